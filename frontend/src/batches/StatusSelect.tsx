import { Select } from "@mantine/core";
import { type BatchStatus, STATUSES } from "./statuses";

const CHOICES = Object.entries(STATUSES).map(([value, { label }]) => ({ value, label }));

interface Props {
  status: BatchStatus | "";
  onStatus: (status: string) => void;
}

export function StatusSelect({ status, onStatus }: Props) {
  return (
    <Select
      aria-label="Status"
      placeholder="Every status"
      data={CHOICES}
      value={status || null}
      onChange={(value) => onStatus(value ?? "")}
      clearable
      w={180}
    />
  );
}
