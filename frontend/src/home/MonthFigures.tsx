import { SimpleGrid } from "@mantine/core";
import type { Balance, UsageNumbers } from "../api/types";
import { chartValue, formatMoney } from "../shared/money";
import { formatCompact, formatShare } from "../shared/numbers";
import { useBalance } from "../usage/queries";
import { FigureCard } from "./FigureCard";

interface Figure {
  label: string;
  shown: (numbers: UsageNumbers) => string;
  value: (numbers: UsageNumbers) => number;
}

const tokens = (numbers: UsageNumbers) => numbers.prompt_tokens + numbers.completion_tokens;
const cachedShare = (numbers: UsageNumbers) =>
  numbers.prompt_tokens > 0 ? numbers.cached_tokens / numbers.prompt_tokens : 0;

const SPEND: Figure = {
  label: "Spend",
  shown: ({ amount }) => formatMoney(amount),
  value: ({ amount }) => chartValue(amount),
};
const FIGURES: Figure[] = [
  SPEND,
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
    shown: (numbers) => formatShare(cachedShare(numbers)),
    value: cachedShare,
  },
];

interface Props {
  current: UsageNumbers;
  /** null while it is not known. */
  previous: UsageNumbers | null;
}

export function MonthFigures({ current, previous }: Props) {
  const share = budgetShare(useBalance().data);
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }}>
      {FIGURES.map((figure) => (
        <FigureCard
          key={figure.label}
          label={figure.label}
          shown={figure.shown(current)}
          value={figure.value(current)}
          before={previous && { shown: figure.shown(previous), value: figure.value(previous) }}
          {...(figure === SPEND && share ? { share } : {})}
        />
      ))}
    </SimpleGrid>
  );
}

function budgetShare(balance: Balance | undefined) {
  if (!balance?.budget || chartValue(balance.budget) === 0) return null;
  const spent = chartValue(balance.spent_this_period) / chartValue(balance.budget);
  return { of: formatMoney(balance.budget), spent };
}
