import { Code, Table, Text, Tooltip } from "@mantine/core";
import type { AuditRow } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { formatAgo, formatDateTime } from "../shared/time";
import { deedWords, detailWords } from "./words";

interface Props {
  rows: AuditRow[];
  /** For operators, who see the deeds in all tenants and in none. */
  tenantName?: (id: string | null) => string;
}

export function AuditTable({ rows, tenantName }: Props) {
  const whose = tenantName ? ["Tenant"] : [];
  return (
    <DataTable
      columns={["When", ...whose, "Who", "Did what", { label: "To what", wide: true }, "With"]}
      minWidth={tenantName ? 960 : 820}
    >
      {rows.map((row) => (
        <Table.Tr key={row.id}>
          <Table.Td style={{ whiteSpace: "nowrap" }}>
            <Tooltip label={formatDateTime(row.at)}>
              <span>{formatAgo(row.at)}</span>
            </Tooltip>
          </Table.Td>
          {tenantName && <Table.Td>{tenantName(row.tenant_id)}</Table.Td>}
          <Table.Td>{row.actor_name || row.actor}</Table.Td>
          <Table.Td>{deedWords(row.action)}</Table.Td>
          <Table.Td>
            <Code style={{ whiteSpace: "nowrap" }}>{row.target}</Code>
          </Table.Td>
          <Table.Td>
            <Text size="xs" c="dimmed" miw={180} maw={360} style={{ overflowWrap: "anywhere" }}>
              {detailWords(row.details)}
            </Text>
          </Table.Td>
        </Table.Tr>
      ))}
    </DataTable>
  );
}
