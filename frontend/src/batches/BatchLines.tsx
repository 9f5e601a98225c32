import { Progress, Text } from "@mantine/core";
import type { Batch } from "../api/types";
import { formatCount } from "../shared/numbers";

type Counts = Pick<Batch, "id" | "total" | "completed" | "failed">;

/** How far a batch is, as a bar and in numbers. */
export function BatchLines({ batch: { id, total, completed, failed } }: { batch: Counts }) {
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
