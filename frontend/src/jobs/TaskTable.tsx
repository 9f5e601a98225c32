import { Badge, Table, Text, Tooltip } from "@mantine/core";
import type { Jobs } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { formatCount, formatSeconds } from "../shared/numbers";
import { formatAgo, formatDateTime } from "../shared/time";

type Task = Jobs["tasks"][number];

const COLUMNS = [
  "Task",
  { label: "Due", wide: true },
  "Last run",
  { label: "Took", right: true, wide: true },
  "Ended as",
  { label: "Done", right: true, wide: true },
  { label: "Failed", right: true },
  { label: "Retried", right: true, wide: true },
];
const COLORS: Record<string, string> = { success: "veneer", failure: "red", retry: "orange" };

export function TaskTable({ tasks }: { tasks: Task[] }) {
  if (tasks.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        No task has such a name.
      </Text>
    );
  }
  return (
    <DataTable columns={COLUMNS} minWidth={820} dense>
      {tasks.map((task) => (
        <TaskRow key={task.name} task={task} />
      ))}
    </DataTable>
  );
}

const SPANS = [
  { seconds: 3600, one: "every hour", many: "h" },
  { seconds: 60, one: "every minute", many: "min" },
];

export function everyWords(seconds: number): string {
  const span = SPANS.find((each) => seconds >= each.seconds && seconds % each.seconds === 0);
  if (!span) return `every ${formatSeconds(String(seconds))}`;
  const count = seconds / span.seconds;
  return count === 1 ? span.one : `every ${count} ${span.many}`;
}

function TaskRow({ task }: { task: Task }) {
  return (
    <Table.Tr style={{ whiteSpace: "nowrap" }}>
      <Table.Td fw={600}>{task.name}</Table.Td>
      <Table.Td>
        {task.every_seconds === null ? "when asked for" : everyWords(task.every_seconds)}
      </Table.Td>
      <Table.Td>
        {task.at ? (
          <Tooltip label={formatDateTime(task.at)}>
            <span>{formatAgo(task.at)}</span>
          </Tooltip>
        ) : (
          "not on record"
        )}
      </Table.Td>
      <Table.Td ta="right">
        {task.seconds === null ? "–" : formatSeconds(String(task.seconds))}
      </Table.Td>
      <Table.Td>
        {task.state && (
          <Badge variant="light" color={COLORS[task.state] ?? "gray"} tt="none">
            {task.error ? `${task.state}: ${task.error}` : task.state}
          </Badge>
        )}
      </Table.Td>
      <Table.Td ta="right">{formatCount(task.succeeded)}</Table.Td>
      <Table.Td ta="right">{formatCount(task.failed)}</Table.Td>
      <Table.Td ta="right">{formatCount(task.retried)}</Table.Td>
    </Table.Tr>
  );
}
