import { Table, Text } from "@mantine/core";
import type { Replica } from "../api/types";
import { useTenants } from "../operator/queries";
import { DataTable } from "../shared/DataTable";
import { formatCount } from "../shared/numbers";

const COLUMNS = ["Tenant", { label: "Running", right: true }, { label: "Waiting", right: true }];
const PLATFORM = "platform";

/** Whose sequences run and wait. Tenants that have neither are left out. */
export function QueueTable({ load }: { load: NonNullable<Replica["load"]> }) {
  const tenants = useTenants();
  const nameOf = (id: string) =>
    id === PLATFORM
      ? "the platform's own trials"
      : (tenants.data?.find((tenant) => tenant.id === id)?.name ?? id);
  const ids = [...new Set([...Object.keys(load.waiting), ...Object.keys(load.running)])];
  if (ids.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        Nobody's requests run or wait.
      </Text>
    );
  }
  return (
    <DataTable columns={COLUMNS} minWidth={320} bare dense flush>
      {ids.map((id) => (
        <Table.Tr key={id}>
          <Table.Td>{nameOf(id)}</Table.Td>
          <Table.Td ta="right">{formatCount(load.running[id] ?? 0)}</Table.Td>
          <Table.Td ta="right">{formatCount(load.waiting[id] ?? 0)}</Table.Td>
        </Table.Tr>
      ))}
    </DataTable>
  );
}
