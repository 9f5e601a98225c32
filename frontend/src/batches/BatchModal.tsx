import { Group, Modal, SimpleGrid, Stack, Text } from "@mantine/core";
import type { FullBatch } from "../api/types";
import { CopyText } from "../shared/CopyText";
import { ErrorState } from "../shared/ErrorState";
import { Figure } from "../shared/Figure";
import { LoadingCards } from "../shared/LoadingCards";
import { formatExactMoney, formatMoney } from "../shared/money";
import { formatCount } from "../shared/numbers";
import { formatDateTime } from "../shared/time";
import { BatchFaults } from "./BatchFaults";
import { BatchFiles } from "./BatchFiles";
import { BatchLines } from "./BatchLines";
import { CancelBatch } from "./CancelBatch";
import { FailedLines } from "./FailedLines";
import { useBatch } from "./queries";
import { StatusBadge } from "./StatusBadge";

interface Props {
  id: string;
  onClose: () => void;
}

/** One batch as far as it is: its lines, its cost, what failed, and its end. */
export function BatchModal({ id, onClose }: Props) {
  return (
    <Modal opened onClose={onClose} title="Batch" size="xl">
      <Details id={id} />
    </Modal>
  );
}

function Details({ id }: { id: string }) {
  const batch = useBatch(id);
  if (batch.isPending) return <LoadingCards count={2} height={90} />;
  if (batch.isError) {
    return (
      <ErrorState
        error={batch.error}
        what="The batch could not be read"
        onRetry={() => batch.refetch()}
      />
    );
  }
  return (
    <Stack>
      <Group justify="space-between">
        <Group gap="xs">
          <CopyText value={id} label="Copy the batch's id" />
          <StatusBadge status={batch.data.status} />
        </Group>
        <CancelBatch batch={batch.data} />
      </Group>
      <BatchLines batch={batch.data} />
      <Numbers batch={batch.data} />
      <Times batch={batch.data} />
      <BatchFaults batch={batch.data} />
      <FailedLines batch={batch.data} />
      <BatchFiles batch={batch.data} />
    </Stack>
  );
}

function Numbers({ batch }: { batch: FullBatch }) {
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }}>
      <Figure
        label={batch.ended_at ? "Cost" : "Cost so far"}
        note={`exactly ${formatExactMoney(batch.amount)}`}
      >
        {formatMoney(batch.amount)}
      </Figure>
      <Figure
        label="Prompt tokens"
        note={`of them ${formatCount(batch.cached_tokens)} from the cache`}
      >
        {formatCount(batch.prompt_tokens)}
      </Figure>
      <Figure
        label="Answer tokens"
        note={`${formatMoney(batch.reserved)} was held when it was created`}
      >
        {formatCount(batch.completion_tokens)}
      </Figure>
    </SimpleGrid>
  );
}

function Times({ batch }: { batch: FullBatch }) {
  const facts = [
    `${batch.endpoint} with the key ${batch.key_name}`,
    `created ${formatDateTime(batch.created_at)}`,
    batch.in_progress_at ? `begun ${formatDateTime(batch.in_progress_at)}` : null,
    batch.ended_at
      ? `ended ${formatDateTime(batch.ended_at)}`
      : `ends by ${formatDateTime(batch.expires_at)}`,
  ];
  const labels = Object.entries(batch.metadata ?? {});
  return (
    <Text size="sm" c="dimmed" style={{ overflowWrap: "anywhere" }}>
      {[...facts, ...labels.map(([name, value]) => `${name}: ${value}`)]
        .filter(Boolean)
        .join(" · ")}
    </Text>
  );
}
