import { Card, Code, Table, Text, Tooltip } from "@mantine/core";
import type { AuditRow } from "../api/types";
import { formatAgo, formatDateTime } from "../shared/time";
import { deedWords, detailWords } from "./words";

export function AuditTable({ rows }: { rows: AuditRow[] }) {
  return (
    <Card withBorder padding={0}>
      <Table.ScrollContainer minWidth={820}>
        <Table verticalSpacing="sm" horizontalSpacing="md" fz="sm">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>When</Table.Th>
              <Table.Th>Who</Table.Th>
              <Table.Th>Did what</Table.Th>
              <Table.Th>To what</Table.Th>
              <Table.Th>With</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={row.id}>
                <Table.Td style={{ whiteSpace: "nowrap" }}>
                  <Tooltip label={formatDateTime(row.at)}>
                    <span>{formatAgo(row.at)}</span>
                  </Tooltip>
                </Table.Td>
                <Table.Td>{row.actor_name || row.actor}</Table.Td>
                <Table.Td>{deedWords(row.action)}</Table.Td>
                <Table.Td>
                  <Code style={{ whiteSpace: "nowrap" }}>{row.target}</Code>
                </Table.Td>
                <Table.Td>
                  <Text size="xs" c="dimmed" maw={360} style={{ overflowWrap: "anywhere" }}>
                    {detailWords(row.details)}
                  </Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Card>
  );
}
