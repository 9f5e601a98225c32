import { Alert, Button, Group, List, Modal, Stack, Text } from "@mantine/core";
import { ApiError, messageOf } from "../api/errors";
import type { Adapter } from "../api/types";
import { notifyDone } from "../shared/confirm";
import { plural } from "../shared/numbers";
import { useDeleteAdapter, useGrants } from "./queries";
import { servingText } from "./versions";

interface Props {
  adapter: Adapter;
  opened: boolean;
  onClose: () => void;
}

const IN_USE = "adapter_in_use";

/** What goes with the adapter, said before it goes. */
export function DeleteModal({ adapter, opened, onClose }: Props) {
  return (
    <Modal opened={opened} onClose={onClose} title={`Delete ${adapter.name}?`}>
      {opened && <Deletion adapter={adapter} onClose={onClose} />}
    </Modal>
  );
}

function Deletion({ adapter, onClose }: Omit<Props, "opened">) {
  const grants = useGrants(adapter);
  const remove = useDeleteAdapter(adapter);
  const dependents = dependentsOf(adapter, grants.data?.map(({ tenant }) => tenant) ?? []);
  const isInUse = adapter.pinned || (grants.data?.length ?? 0) > 0;
  // Somebody else may have shared or pinned it meanwhile: then the server says so, and is asked once more.
  const insists = isInUse || isRefusedAsUsed(remove.error);
  const confirm = () =>
    remove.mutate(insists, {
      onSuccess: () => {
        notifyDone(`${adapter.name} is deleted.`);
        onClose();
      },
    });
  return (
    <Stack>
      <Text size="sm">
        {`Requests for the model ${adapter.name} are refused from now on; those that run end as they would have. Its usage stays in the books. This cannot be undone.`}
      </Text>
      <List size="sm" spacing={4}>
        {dependents.map((text) => (
          <List.Item key={text}>{text}</List.Item>
        ))}
      </List>
      {remove.isError && (
        <Alert color="red" role="alert">
          {messageOf(remove.error)}
        </Alert>
      )}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button
          color="red.9"
          onClick={confirm}
          loading={remove.isPending}
          disabled={grants.isPending}
        >
          {insists ? "Delete it all the same" : "Delete the adapter"}
        </Button>
      </Group>
    </Stack>
  );
}

function isRefusedAsUsed(error: unknown): boolean {
  return error instanceof ApiError && error.code === IN_USE;
}

function dependentsOf(adapter: Adapter, grantees: string[]): string[] {
  const serving = servingText(adapter);
  const found = [
    `${plural(adapter.versions.length, "version")} and their files go`,
    serving && `its name answers now: ${serving}`,
    adapter.pinned && "it is pinned: its slot on the device is freed",
    grantees.length > 0 && `it is shared with ${grantees.join(", ")}: they are refused, too`,
  ];
  return found.filter((text): text is string => typeof text === "string");
}
