import { Flex, Text } from "@mantine/core";
import { formatExactMoney } from "../shared/money";
import { formatCount, formatMilliseconds, formatTenths } from "../shared/numbers";
import { type Answer, timeToFirst, tokensPerSecond } from "./answer";

/** What the answer took, under the answer. */
export function AnswerFigures({ answer }: { answer: Answer }) {
  const figures = figuresOf(answer);
  if (figures.length === 0) return null;
  return (
    <Flex
      component="ul"
      wrap="wrap"
      columnGap="sm"
      rowGap={2}
      p={0}
      m={0}
      aria-label="What this answer took"
    >
      {figures.map(([label, value]) => (
        <Text
          key={label}
          component="li"
          size="xs"
          c="dimmed"
          className="figures"
          style={{ listStyle: "none" }}
        >
          {label}{" "}
          <Text span size="xs" fw={600} c="var(--mantine-color-text)">
            {value}
          </Text>
        </Text>
      ))}
    </Flex>
  );
}

function figuresOf(answer: Answer): [string, string][] {
  const { usage } = answer;
  const first = timeToFirst(answer);
  const speed = tokensPerSecond(answer);
  const figures: [string, string | null][] = [
    ["in", usage && formatCount(usage.prompt_tokens)],
    ["cached", usage && formatCount(usage.prompt_tokens_details?.cached_tokens ?? 0)],
    ["out", usage && formatCount(usage.completion_tokens)],
    ["first token", first === null ? null : formatMilliseconds(first)],
    ["tokens/s", speed === null ? null : formatTenths(speed)],
    ["cost", usage?.cost === undefined ? null : formatExactMoney(usage.cost)],
  ];
  return figures.filter((figure): figure is [string, string] => figure[1] !== null);
}
