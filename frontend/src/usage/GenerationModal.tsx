import { DataList, Modal, Stack, Text, Title } from "@mantine/core";
import type { FullGeneration } from "../api/types";
import { CopyText } from "../shared/CopyText";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatExactMoney } from "../shared/money";
import { formatCount, formatMilliseconds, formatSeconds } from "../shared/numbers";
import { PartsList } from "./Composition";
import { useGeneration } from "./queries";
import { formatInZone } from "./zone";

interface Props {
  id: string;
  tz: string;
  onClose: () => void;
}

/** One request: what it used, how long it took, and how its amount comes about. */
export function GenerationModal({ id, tz, onClose }: Props) {
  return (
    <Modal opened onClose={onClose} title="Generation" size="lg">
      <Content id={id} tz={tz} />
    </Modal>
  );
}

function Content({ id, tz }: { id: string; tz: string }) {
  const generation = useGeneration(id);
  if (generation.isPending) return <LoadingCards count={1} height={240} />;
  if (generation.isError) {
    return (
      <ErrorState
        error={generation.error}
        what="The generation could not be read"
        onRetry={() => generation.refetch()}
      />
    );
  }
  const found = generation.data;
  return (
    <Stack gap="md">
      <CopyText value={found.id} label="Copy the id" />
      <Facts rows={factsOf(found, tz)} />
      <Title order={3} size="h5">
        {`What ${formatExactMoney(found.amount)} is made of`}
      </Title>
      <PartsList parts={found.parts} />
      <Text size="xs" c="dimmed">
        {`Charged per 1M tokens: ${formatExactMoney(found.rates.input)} input, ${formatExactMoney(found.rates.cached_input)} cached, ${formatExactMoney(found.rates.output)} output, with surcharge and discount. Its device time cost ${formatExactMoney(found.cost)}. The cache saved ${formatExactMoney(found.parts.cache_savings)}.`}
      </Text>
    </Stack>
  );
}

function factsOf(found: FullGeneration, tz: string): [string, string][] {
  const first = found.first_token_ms;
  const facts: [string, string | null][] = [
    ["Model", found.model],
    ["Base model", found.base_model],
    ["Key", found.key],
    ["Member", found.member],
    ["Started", formatInZone(found.started_at, tz)],
    ["Ended", `${formatInZone(found.finished_at, tz)}, ${tz}`],
    ["Outcome", `${found.outcome} (${found.finish_reason})`],
    ["Took", formatMilliseconds(1000 * found.seconds)],
    ["First token", first === null ? null : `after ${formatMilliseconds(first)}`],
    ["Device time", formatSeconds(found.device_seconds)],
    [
      "Tokens",
      `${formatCount(found.prompt_tokens)} in (${formatCount(found.cached_tokens)} cached), ${formatCount(found.completion_tokens)} out`,
    ],
    ["Batch", found.is_batch ? "yes, discounted" : null],
    ["Booked", found.late ? "late: after its hold had ended" : null],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== null);
}

function Facts({ rows }: { rows: [string, string][] }) {
  return (
    <DataList size="sm" gap={4} labelWidth="110px">
      {rows.map(([label, value]) => (
        <DataList.Item key={label}>
          <DataList.ItemLabel>{label}</DataList.ItemLabel>
          <DataList.ItemValue style={{ overflowWrap: "anywhere" }}>{value}</DataList.ItemValue>
        </DataList.Item>
      ))}
    </DataList>
  );
}
