import { Card, SimpleGrid, Text } from "@mantine/core";
import type { UsageNumbers } from "../api/types";
import { chartValue, formatMoney } from "../shared/money";
import { formatCompact } from "../shared/numbers";
import { changeWords } from "./period";

interface Figure {
  label: string;
  shown: (numbers: UsageNumbers) => string;
  value: (numbers: UsageNumbers) => number;
}

const tokens = (numbers: UsageNumbers) => numbers.prompt_tokens + numbers.completion_tokens;
const cachedPercent = (numbers: UsageNumbers) =>
  numbers.prompt_tokens > 0 ? (100 * numbers.cached_tokens) / numbers.prompt_tokens : 0;

const FIGURES: Figure[] = [
  {
    label: "Spend",
    shown: ({ amount }) => formatMoney(amount),
    value: ({ amount }) => chartValue(amount),
  },
  {
    label: "Per 1M tokens",
    shown: ({ amount_per_1m: price }) => (price ? formatMoney(price) : "–"),
    value: ({ amount_per_1m: price }) => (price ? chartValue(price) : 0),
  },
  { label: "Tokens", shown: (numbers) => formatCompact(tokens(numbers)), value: tokens },
  {
    label: "Requests",
    shown: ({ requests }) => formatCompact(requests),
    value: ({ requests }) => requests,
  },
  {
    label: "Input from the cache",
    shown: (numbers) => `${cachedPercent(numbers).toFixed(0)} %`,
    value: cachedPercent,
  },
];

/** previous: null while it is not known. */
export function MonthFigures({
  current,
  previous,
}: {
  current: UsageNumbers;
  previous: UsageNumbers | null;
}) {
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }}>
      {FIGURES.map((figure) => (
        <FigureCard key={figure.label} figure={figure} current={current} previous={previous} />
      ))}
    </SimpleGrid>
  );
}

interface CardProps {
  figure: Figure;
  current: UsageNumbers;
  previous: UsageNumbers | null;
}

function FigureCard({ figure, current, previous }: CardProps) {
  const change = previous && changeWords(figure.value(current), figure.value(previous));
  return (
    <Card withBorder component="section" aria-label={figure.label}>
      <Text size="sm" c="dimmed" fw={500}>
        {figure.label}
      </Text>
      <Text fz="1.7rem" fw={650} lh={1.3} className="figures">
        {figure.shown(current)}
      </Text>
      <Text size="xs" c="dimmed" className="figures">
        {change && previous
          ? `${change}, before ${figure.shown(previous)}`
          : "nothing the month before"}
      </Text>
    </Card>
  );
}
