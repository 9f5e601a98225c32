import { Alert, Card, Progress, SimpleGrid, Stack, Text } from "@mantine/core";
import { Figure } from "../shared/Figure";
import { formatBytes, formatCount, formatShort } from "../shared/numbers";
import type { Answer } from "./arithmetic";
import type { Asked } from "./useQuestion";

export function CapacityResult({ found, asked }: { found: Answer; asked: Asked }) {
  return (
    <Card withBorder component="section" aria-label="What fits">
      <Stack gap="lg">
        <Figures found={found} asked={asked} />
        {found.concurrency > 0 ? (
          <Layout found={found} memory={asked.question.memory} />
        ) : (
          <Alert color="red" variant="light" title="Not one sequence fits">
            {`Weights and adapter slots take ${formatBytes(found.weightBytes + found.slotBytes)}. Use more memory, fewer slots, a lower rank or a shorter context.`}
          </Alert>
        )}
      </Stack>
    </Card>
  );
}

function Figures({ found, asked }: { found: Answer; asked: Asked }) {
  const { question } = asked;
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }}>
      <Figure label="At once" note={`sequences of ${formatCount(question.context)} tokens`}>
        {formatCount(found.concurrency)}
      </Figure>
      <Figure label="KV per token" note={`in ${question.kv}, all layers`}>
        {formatBytes(found.kvBytesPerToken)}
      </Figure>
      <Figure label="KV pool" note={`${formatCount(found.poolTokens)} tokens`}>
        {found.poolBytes > 0 ? formatBytes(found.poolBytes) : "none"}
      </Figure>
      <Figure
        label="Ridge point"
        note={`${formatShort(found.ridge)} FLOP a byte: beyond so many tokens a step, arithmetic bounds it`}
      >
        {`${formatCount(Math.round(found.ridgeTokens))} tokens`}
      </Figure>
      <Figure
        label="Decode, at most"
        note={
          found.stepSeconds
            ? `a step of all takes at least ${formatShort(found.stepSeconds * 1000)} ms`
            : "nothing runs"
        }
      >
        {found.tokensPerSecond ? `${formatShort(found.tokensPerSecond)} tokens/s` : "–"}
      </Figure>
    </SimpleGrid>
  );
}

function Layout({ found, memory }: { found: Answer; memory: number }) {
  const parts = [
    { label: "weights", bytes: found.weightBytes, color: "grape.6" },
    { label: "adapter slots", bytes: found.slotBytes, color: "orange.5" },
    { label: "KV pool", bytes: found.poolBytes, color: "veneer.7" },
  ];
  const rest = memory - parts.reduce((sum, { bytes }) => sum + bytes, 0);
  const words = [...parts, { label: "kept free", bytes: rest }].map(
    ({ label, bytes }) => `${formatBytes(bytes)} ${label}`,
  );
  return (
    <div>
      <Progress.Root size="xl">
        {parts.map(({ label, bytes, color }) => (
          <Progress.Section
            key={label}
            value={(100 * bytes) / memory}
            color={color}
            aria-label={label}
          />
        ))}
      </Progress.Root>
      <Text size="xs" c="dimmed" mt={6} className="figures">
        {words.join(" · ")}
      </Text>
    </div>
  );
}
