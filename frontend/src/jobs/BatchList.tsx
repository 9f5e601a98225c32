import { Badge, Code, Group, Progress, Select, Stack, Table, Text } from "@mantine/core";
import { IconStack3 } from "@tabler/icons-react";
import type { OperatorBatch } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { ListStates } from "../shared/ListStates";
import { LoadMore } from "../shared/LoadMore";
import { formatCount } from "../shared/numbers";
import { SearchField } from "../shared/SearchField";
import { formatDateTime } from "../shared/time";
import { useUrlState } from "../shared/useUrlState";
import { useBatches } from "./queries";

type Status = OperatorBatch["status"];

const NAMES = ["status", "search"] as const;
const STATUSES: Record<Status, { label: string; color: string }> = {
  validating: { label: "being read", color: "blue" },
  in_progress: { label: "in progress", color: "veneer" },
  finalizing: { label: "finishing", color: "blue" },
  completed: { label: "completed", color: "gray" },
  failed: { label: "failed", color: "red" },
  expired: { label: "expired", color: "orange" },
  cancelling: { label: "being cancelled", color: "orange" },
  cancelled: { label: "cancelled", color: "gray" },
};
const COLUMNS = ["Batch", "Tenant", "Endpoint", "Status", "Lines", "Created", "Ends by"];
const NOTHING = {
  icon: IconStack3,
  title: "No such batch",
  text: "Batches of every tenant appear here, the newest first.",
};

export function BatchList() {
  const [values, change] = useUrlState(NAMES);
  const status = (values.status in STATUSES ? values.status : "") as Status | "";
  const { list, rows } = useBatches(status, values.search);
  return (
    <Stack>
      <Group gap="sm">
        <Select
          aria-label="Status"
          placeholder="Every status"
          data={Object.entries(STATUSES).map(([value, { label }]) => ({ value, label }))}
          value={status || null}
          onChange={(value) => change({ status: value ?? "" })}
          clearable
          w={180}
        />
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
        <LoadMore shown={rows?.length ?? 0} what="batch" list={list} />
      </ListStates>
    </Stack>
  );
}

function BatchRow({ batch }: { batch: OperatorBatch }) {
  const { label, color } = STATUSES[batch.status];
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
        <Badge variant="light" color={color} tt="none">
          {label}
        </Badge>
      </Table.Td>
      <Table.Td>
        <Lines batch={batch} />
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

function Lines({ batch: { id, total, completed, failed } }: { batch: OperatorBatch }) {
  const part = (count: number) => (total > 0 ? (100 * count) / total : 0);
  return (
    <div style={{ minWidth: 160 }}>
      <Progress.Root size="sm">
        <Progress.Section
          value={part(completed)}
          color="veneer.7"
          aria-label={`Lines of ${id} that are done`}
        />
        <Progress.Section
          value={part(failed)}
          color="red.6"
          aria-label={`Lines of ${id} that failed`}
        />
      </Progress.Root>
      <Text size="xs" c="dimmed" className="figures">
        {`${formatCount(completed)} of ${formatCount(total)}${failed ? `, ${formatCount(failed)} failed` : ""}`}
      </Text>
    </div>
  );
}
