import { Badge, Table, Text, Tooltip } from "@mantine/core";
import type { Jobs } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { formatCount, formatSeconds } from "../shared/numbers";
import { formatAgo, formatDateTime } from "../shared/time";

type Task = Jobs["tasks"][number];

const COLUMNS = [
  "Task",
  "Due",
  "Last run",
  { label: "Took", right: true },
  "Ended as",
  { label: "Done", right: true },
  { label: "Failed", right: true },
  { label: "Retried", right: true },
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

function TaskRow({ task }: { task: Task }) {
  return (
    <Table.Tr>
      <Table.Td fw={600}>{task.name}</Table.Td>
      <Table.Td>
        {task.every_seconds === null
          ? "when asked for"
          : `every ${formatSeconds(String(task.every_seconds))}`}
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
