import { Badge } from "@mantine/core";
import { type BatchStatus, STATUSES } from "./statuses";

export function StatusBadge({ status }: { status: BatchStatus }) {
  const { label, color } = STATUSES[status];
  return (
    <Badge variant="light" color={color} tt="none">
      {label}
    </Badge>
  );
}
