import { Code, Group, Stack, Table, Text } from "@mantine/core";
import { IconStack3 } from "@tabler/icons-react";
import type { OperatorBatch } from "../api/types";
import { BatchLines } from "../batches/BatchLines";
import { BatchTimes } from "../batches/BatchTimes";
import { StatusBadge } from "../batches/StatusBadge";
import { StatusSelect } from "../batches/StatusSelect";
import { statusOf } from "../batches/statuses";
import { DataTable } from "../shared/DataTable";
import { ListStates } from "../shared/ListStates";
import { LoadMore } from "../shared/LoadMore";
import { SearchField } from "../shared/SearchField";
import { useUrlState } from "../shared/useUrlState";
import { useBatches } from "./queries";

const NAMES = ["status", "search"] as const;
const COLUMNS = ["Batch", "Tenant", "Status", "Lines", { label: "Created, ends by", wide: true }];
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
        <Text size="xs" c="dimmed">
          {batch.endpoint}
        </Text>
      </Table.Td>
      <Table.Td>
        <Code>{batch.tenant}</Code>
      </Table.Td>
      <Table.Td>
        <StatusBadge status={batch.status} />
      </Table.Td>
      <Table.Td>
        <BatchLines batch={batch} />
      </Table.Td>
      <Table.Td style={{ whiteSpace: "nowrap" }}>
        <BatchTimes batch={batch} />
      </Table.Td>
    </Table.Tr>
  );
}
