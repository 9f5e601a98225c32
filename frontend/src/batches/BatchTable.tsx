import { Anchor, Code, Table, Text } from "@mantine/core";
import type { Batch } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { formatMoney } from "../shared/money";
import { BatchLines } from "./BatchLines";
import { BatchTimes } from "./BatchTimes";
import { StatusBadge } from "./StatusBadge";

const COLUMNS = [
  "Batch",
  "Status",
  "Lines",
  { label: "Cost", right: true },
  { label: "Key", wide: true },
  { label: "Created, ends by", wide: true },
];

interface Props {
  batches: Batch[];
  onOpen: (id: string) => void;
}

export function BatchTable({ batches, onOpen }: Props) {
  return (
    <DataTable columns={COLUMNS} minWidth={900} dense>
      {batches.map((batch) => (
        <Table.Tr key={batch.id}>
          <Table.Td>
            <Anchor component="button" type="button" onClick={() => onOpen(batch.id)}>
              <Code c="inherit">{batch.id}</Code>
            </Anchor>
            <Text size="xs" c="dimmed">
              {batch.endpoint}
            </Text>
          </Table.Td>
          <Table.Td>
            <StatusBadge status={batch.status} />
          </Table.Td>
          <Table.Td>
            <BatchLines batch={batch} />
          </Table.Td>
          <Table.Td ta="right" className="figures">
            {formatMoney(batch.amount)}
          </Table.Td>
          <Table.Td>{batch.key_name}</Table.Td>
          <Table.Td style={{ whiteSpace: "nowrap" }}>
            <BatchTimes batch={batch} />
          </Table.Td>
        </Table.Tr>
      ))}
    </DataTable>
  );
}
