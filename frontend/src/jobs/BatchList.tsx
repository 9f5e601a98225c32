import { Code, Group, Stack, Table } from "@mantine/core";
import { IconStack3 } from "@tabler/icons-react";
import type { OperatorBatch } from "../api/types";
import { BatchLines } from "../batches/BatchLines";
import { StatusBadge } from "../batches/StatusBadge";
import { StatusSelect } from "../batches/StatusSelect";
import { statusOf } from "../batches/statuses";
import { DataTable } from "../shared/DataTable";
import { ListStates } from "../shared/ListStates";
import { LoadMore } from "../shared/LoadMore";
import { SearchField } from "../shared/SearchField";
import { formatDateTime } from "../shared/time";
import { useUrlState } from "../shared/useUrlState";
import { useBatches } from "./queries";

const NAMES = ["status", "search"] as const;
const COLUMNS = [
  "Batch",
  "Tenant",
  { label: "Endpoint", wide: true },
  "Status",
  "Lines",
  { label: "Created", wide: true },
  { label: "Ends by", wide: true },
];
const NOTHING = {
  icon: IconStack3,
  title: "No such batch",
  text: "Batches of every tenant appear here, the newest first.",
};

export function BatchList() {
  const [values, change] = useUrlState(NAMES);
  const status = statusOf(values.status);
  const { list, rows } = useBatches(status, values.search);
  return (
    <Stack>
      <Group gap="sm">
        <StatusSelect status={status} onStatus={(chosen) => change({ status: chosen })} />
        <SearchField
          label="Batch or tenant"
          value={values.search}
          onSearch={(search) => change({ search })}
        />
      </Group>
      <ListStates query={list} isEmpty={rows?.length === 0} what="The batches" nothing={NOTHING}>
        <DataTable columns={COLUMNS} minWidth={900} dense>
          {rows?.map((batch) => (
            <BatchRow key={batch.id} batch={batch} />
          ))}
        </DataTable>
        <LoadMore shown={rows?.length ?? 0} what="batch" many="batches" list={list} onward />
      </ListStates>
    </Stack>
  );
}

function BatchRow({ batch }: { batch: OperatorBatch }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Code>{batch.id}</Code>
      </Table.Td>
      <Table.Td>
        <Code>{batch.tenant}</Code>
      </Table.Td>
      <Table.Td>{batch.endpoint}</Table.Td>
      <Table.Td>
        <StatusBadge status={batch.status} />
      </Table.Td>
      <Table.Td>
        <BatchLines batch={batch} />
      </Table.Td>
      <Table.Td style={{ whiteSpace: "nowrap" }}>{formatDateTime(batch.created_at)}</Table.Td>
      <Table.Td style={{ whiteSpace: "nowrap" }}>
        {batch.ended_at
          ? `ended ${formatDateTime(batch.ended_at)}`
          : formatDateTime(batch.expires_at)}
      </Table.Td>
    </Table.Tr>
  );
}
