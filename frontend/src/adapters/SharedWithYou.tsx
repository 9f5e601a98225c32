import { Button, Card, Stack, Table, Title } from "@mantine/core";
import type { SharedAdapter } from "../api/types";
import { CopyText } from "../shared/CopyText";
import { confirmDanger, notifyDone, notifyFailed } from "../shared/confirm";
import { ACTIONS, DataTable } from "../shared/DataTable";
import { useGiveBack, useSharedAdapters } from "./queries";

/** What other tenants share; nothing where nobody does. */
export function SharedWithYou({ canWrite }: { canWrite: boolean }) {
  const shared = useSharedAdapters();
  if (!shared.data || shared.data.length === 0) return null;
  return (
    <Card withBorder component="section" aria-label="Shared with you">
      <Stack gap="sm">
        <Title order={2}>Shared with you</Title>
        <DataTable
          columns={["Model name", "Owner", "Base model", "Answers with", ACTIONS]}
          minWidth={560}
          bare
          dense
          flush
        >
          {shared.data.map((adapter) => (
            <SharedRow key={adapter.id} adapter={adapter} canWrite={canWrite} />
          ))}
        </DataTable>
      </Stack>
    </Card>
  );
}

function SharedRow({ adapter, canWrite }: { adapter: SharedAdapter; canWrite: boolean }) {
  const giveBack = useGiveBack();
  const confirm = () =>
    confirmDanger({
      title: `Give ${adapter.model} back?`,
      text: `Your next request for ${adapter.model} is refused. ${adapter.owner} may share it with you again.`,
      confirm: "Give it back",
      onConfirm: () =>
        giveBack.mutate(adapter.id, {
          onSuccess: () => notifyDone(`${adapter.model} is not yours to call any more.`),
          onError: (error) => notifyFailed("It is still shared with you", error),
        }),
    });
  const versions = adapter.versions.map((number) => `v${number}`).join(", ");
  return (
    <Table.Tr>
      <Table.Td>
        <CopyText value={adapter.model} label="Copy the model name" />
      </Table.Td>
      <Table.Td>{adapter.owner}</Table.Td>
      <Table.Td>{adapter.base_model}</Table.Td>
      <Table.Td>{versions || "nothing now"}</Table.Td>
      <Table.Td ta="right">
        {canWrite && (
          <Button
            size="compact-xs"
            variant="default"
            onClick={confirm}
            loading={giveBack.isPending}
          >
            Give back
          </Button>
        )}
      </Table.Td>
    </Table.Tr>
  );
}
