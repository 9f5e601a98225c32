import { Badge, Button, Code, Table, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Discrepancy } from "../api/types";
import { detailWords } from "../audit/words";
import { ACTIONS, DataTable } from "../shared/DataTable";
import { formatDateTime } from "../shared/time";
import { ResolveModal } from "./ResolveModal";

const COLUMNS = [
  "Opened",
  "What",
  { label: "About", wide: true },
  { label: "Found", wide: true },
  "Outcome",
  ACTIONS,
];

export function DiscrepancyTable({ rows }: { rows: Discrepancy[] }) {
  return (
    <DataTable columns={COLUMNS} minWidth={820}>
      {rows.map((row) => (
        <Row key={row.id} row={row} />
      ))}
    </DataTable>
  );
}

function Row({ row }: { row: Discrepancy }) {
  const [resolving, resolve] = useDisclosure(false);
  return (
    <Table.Tr>
      <Table.Td>{formatDateTime(row.opened_at)}</Table.Td>
      <Table.Td>{row.kind.replaceAll("_", " ")}</Table.Td>
      <Table.Td>
        <Code>{row.request_id}</Code>
      </Table.Td>
      <Table.Td>
        <Text size="xs" c="dimmed" miw={260} maw={320} style={{ overflowWrap: "anywhere" }}>
          {detailWords(row.details)}
        </Text>
      </Table.Td>
      <Table.Td>
        {row.resolved_at ? (
          <Text size="sm" maw={280}>
            {row.note}
          </Text>
        ) : (
          <Badge variant="light" color="orange" tt="none">
            open
          </Badge>
        )}
      </Table.Td>
      <Table.Td ta="right">
        {!row.resolved_at && (
          <Button size="compact-sm" variant="default" onClick={resolve.open}>
            Resolve
          </Button>
        )}
        {resolving && <ResolveModal row={row} onClose={resolve.close} />}
      </Table.Td>
    </Table.Tr>
  );
}
