import { Alert, Badge, Code, Group, Stack, Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import type { EvaluationAnswer } from "../api/types";
import { formatMoney } from "../shared/money";
import { formatMilliseconds, plural } from "../shared/numbers";

const DifferingText = lazy(() => import("./DifferingText"));

interface Props {
  side: string;
  answer: EvaluationAnswer | null;
  /** What the other side answered, where the two differ. */
  other: string | null;
}

/** One side's answer to one prompt: its text, whether it passed, and what it took. */
export function Answer({ side, answer, other }: Props) {
  return (
    <Stack gap={6} miw={0} role="group" aria-label={`Answer of ${side}`}>
      <Group gap="xs">
        <Text size="sm" fw={600}>
          {side}
        </Text>
        {answer && <Checks answer={answer} />}
      </Group>
      {answer ? <Given answer={answer} side={side} other={other} /> : <Missing />}
    </Stack>
  );
}

function Missing() {
  return (
    <Text size="sm" c="dimmed">
      Not answered.
    </Text>
  );
}

function Given({ answer, side, other }: Props & { answer: EvaluationAnswer }) {
  if (answer.error) {
    return (
      <Alert color="red" title={answer.error.code} role="group">
        {answer.error.message}
      </Alert>
    );
  }
  const facts = [
    plural(answer.completion_tokens, "token"),
    `${plural(answer.prompt_tokens, "token")} of prompt, ${answer.cached_tokens} cached`,
    formatMilliseconds(answer.latency_ms),
    formatMoney(answer.amount),
    answer.finish_reason === "length" ? "cut off at its limit" : null,
  ];
  return (
    <>
      <Code
        block
        fz="xs"
        mah={280}
        tabIndex={0}
        aria-label={`Text of ${side}`}
        style={{ overflow: "auto", whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}
      >
        {other === null ? (
          answer.text
        ) : (
          <Suspense fallback={answer.text}>
            <DifferingText text={answer.text} other={other} />
          </Suspense>
        )}
      </Code>
      <Text size="xs" c="dimmed" className="figures">
        {facts.filter(Boolean).join(" · ")}
      </Text>
    </>
  );
}

function Checks({ answer: { contains, json_schema, passed } }: { answer: EvaluationAnswer }) {
  if (passed === null) return null;
  const missed = [contains === false && "contains", json_schema === false && "json_schema"];
  return (
    <Badge variant="light" color={passed ? "veneer" : "red"} tt="none">
      {passed ? "passed" : `not passed: ${missed.filter(Boolean).join(", ")}`}
    </Badge>
  );
}
