import { Text } from "@mantine/core";
import type { Batch } from "../api/types";
import { formatDateTime } from "../shared/time";

type Times = Pick<Batch, "created_at" | "ended_at" | "expires_at">;

/** When it began, and below it when it ended or will have. */
export function BatchTimes({ batch: { created_at, ended_at, expires_at } }: { batch: Times }) {
  return (
    <>
      {formatDateTime(created_at)}
      <Text size="xs" c="dimmed">
        {ended_at ? `ended ${formatDateTime(ended_at)}` : `ends by ${formatDateTime(expires_at)}`}
      </Text>
    </>
  );
}
