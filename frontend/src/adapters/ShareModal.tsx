import { ActionIcon, Button, Group, Modal, Stack, Table, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { IconTrash } from "@tabler/icons-react";
import { messageOf } from "../api/errors";
import type { Adapter, AdapterGrant } from "../api/types";
import { useTenant } from "../session/context";
import { CopyText } from "../shared/CopyText";
import { confirmDanger, notifyDone, tell } from "../shared/confirm";
import { ACTIONS, DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatDateTime } from "../shared/time";
import { useGrants, useRevokeGrant, useShare } from "./queries";
import { ShareMarkup } from "./ShareMarkup";

interface Props {
  adapter: Adapter;
  opened: boolean;
  onClose: () => void;
}

/** With whom an adapter is shared: give, see, take back. */
export function ShareModal({ adapter, opened, onClose }: Props) {
  return (
    <Modal opened={opened} onClose={onClose} title={`Share ${adapter.name}`} size="lg">
      {opened && (
        <Stack>
          <GiveForm adapter={adapter} />
          <Grants adapter={adapter} />
        </Stack>
      )}
    </Modal>
  );
}

function GiveForm({ adapter }: { adapter: Adapter }) {
  const { membership } = useTenant();
  const share = useShare(adapter);
  const form = useForm({
    initialValues: { tenant: "" },
    validate: { tenant: (value) => (value.trim() ? null : "Name the tenant, such as globex") },
  });
  const submit = ({ tenant }: { tenant: string }) =>
    share.mutate(tenant.trim(), {
      onSuccess: () => {
        notifyDone(`${tenant.trim()} may call ${adapter.name} from now on.`);
        form.reset();
      },
    });
  return (
    <form onSubmit={form.onSubmit(submit)}>
      <Stack gap="sm">
        <CopyText
          value={`${membership?.tenant.slug}/${adapter.name}`}
          label="Copy the name that others use"
        />
        <Text size="sm">
          A tenant that you share it with calls it by this name and pays for what it uses. It sees
          neither the files nor your prompts. You may have it pay something on top, for you.
        </Text>
        <Group align="flex-end" wrap="nowrap">
          <TextInput
            label="Tenant"
            description="Its short name"
            placeholder="globex"
            flex={1}
            {...form.getInputProps("tenant")}
            error={form.errors.tenant ?? (share.error ? messageOf(share.error) : null)}
          />
          <Button type="submit" loading={share.isPending}>
            Share
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function Grants({ adapter }: { adapter: Adapter }) {
  const grants = useGrants(adapter);
  if (grants.isPending) return <LoadingCards count={1} height={48} />;
  if (grants.isError) {
    return (
      <ErrorState
        error={grants.error}
        what="With whom it is shared could not be read"
        onRetry={() => grants.refetch()}
      />
    );
  }
  if (grants.data.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        It is shared with nobody.
      </Text>
    );
  }
  return (
    <DataTable
      columns={["Tenant", "Since", "On top, per 1M tokens", ACTIONS]}
      minWidth={480}
      bare
      dense
      flush
    >
      {grants.data.map((grant) => (
        <GrantRow key={grant.id} adapter={adapter} grant={grant} />
      ))}
    </DataTable>
  );
}

function GrantRow({ adapter, grant }: { adapter: Adapter; grant: AdapterGrant }) {
  const revoke = useRevokeGrant(adapter);
  const confirm = () =>
    confirmDanger({
      title: `Stop sharing with ${grant.tenant}?`,
      text: `The next request of ${grant.tenant} for ${adapter.name} is refused. What it used stays on its bill.`,
      confirm: "Stop sharing",
      onConfirm: () =>
        tell(
          revoke.mutateAsync(grant.id),
          `${adapter.name} is not shared with ${grant.tenant} any more.`,
          "It is still shared",
        ),
    });
  return (
    <Table.Tr>
      <Table.Td fw={600}>{grant.tenant}</Table.Td>
      <Table.Td>{formatDateTime(grant.created_at)}</Table.Td>
      <Table.Td>
        <ShareMarkup adapter={adapter} grant={grant} />
      </Table.Td>
      <Table.Td ta="right">
        <ActionIcon
          variant="subtle"
          color="red"
          onClick={confirm}
          loading={revoke.isPending}
          aria-label={`Stop sharing with ${grant.tenant}`}
        >
          <IconTrash size={16} aria-hidden />
        </ActionIcon>
      </Table.Td>
    </Table.Tr>
  );
}
