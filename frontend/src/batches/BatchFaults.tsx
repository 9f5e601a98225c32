import { Code, Stack, Table, Title } from "@mantine/core";
import type { FullBatch } from "../api/types";
import { DataTable } from "../shared/DataTable";

/** Why it failed or was stopped, by the line of its file. */
export function BatchFaults({ batch: { faults } }: { batch: FullBatch }) {
  if (faults.length === 0) return null;
  return (
    <Stack gap="xs">
      <Title order={3} size="h5">
        What is wrong
      </Title>
      <DataTable columns={["Line", "Field", "What", "Code"]} minWidth={520} bare dense flush>
        {faults.map((fault, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two faults of a line may be alike
          <Table.Tr key={index}>
            <Table.Td className="figures">{fault.line ?? "all"}</Table.Td>
            <Table.Td>{fault.param ?? "–"}</Table.Td>
            <Table.Td style={{ overflowWrap: "anywhere" }}>{fault.message}</Table.Td>
            <Table.Td>
              <Code>{fault.code}</Code>
            </Table.Td>
          </Table.Tr>
        ))}
      </DataTable>
    </Stack>
  );
}
