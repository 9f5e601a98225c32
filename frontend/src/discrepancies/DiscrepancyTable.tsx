import { Badge, Button, Card, Code, Table, Text, VisuallyHidden } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Discrepancy } from "../api/types";
import { detailWords } from "../audit/words";
import { formatDateTime } from "../shared/time";
import { ResolveModal } from "./ResolveModal";

export function DiscrepancyTable({ rows }: { rows: Discrepancy[] }) {
  return (
    <Card withBorder padding={0}>
      <Table.ScrollContainer minWidth={820}>
        <Table verticalSpacing="sm" horizontalSpacing="md" fz="sm">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Opened</Table.Th>
              <Table.Th>What</Table.Th>
              <Table.Th>About</Table.Th>
              <Table.Th>Found</Table.Th>
              <Table.Th>Outcome</Table.Th>
              <Table.Th>
                <VisuallyHidden>Actions</VisuallyHidden>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Row key={row.id} row={row} />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Card>
  );
}

function Row({ row }: { row: Discrepancy }) {
  const [resolving, resolve] = useDisclosure(false);
  return (
    <Table.Tr>
      <Table.Td style={{ whiteSpace: "nowrap" }}>{formatDateTime(row.opened_at)}</Table.Td>
      <Table.Td>{row.kind.replaceAll("_", " ")}</Table.Td>
      <Table.Td>
        <Code>{row.request_id}</Code>
      </Table.Td>
      <Table.Td>
        <Text size="xs" c="dimmed" maw={320} style={{ overflowWrap: "anywhere" }}>
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
        {resolving && <ResolveModal id={row.id} onClose={resolve.close} />}
      </Table.Td>
    </Table.Tr>
  );
}
