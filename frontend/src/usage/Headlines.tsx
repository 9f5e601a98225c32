import { Card, Grid, Group, Text, Tooltip } from "@mantine/core";
import type { ReactNode } from "react";
import type { UsageNumbers } from "../api/types";
import { changeWords } from "../shared/change";
import { chartValue, formatExactMoney, formatMoney } from "../shared/money";
import { formatCompact, formatCount, formatSeconds } from "../shared/numbers";
import { BudgetLine } from "./BudgetLine";

interface Props {
  total: UsageNumbers;
  /** Of the time before; null: not compared, or not known yet. */
  previous: UsageNumbers | null;
}

const tokensOf = (numbers: UsageNumbers) => numbers.prompt_tokens + numbers.completion_tokens;

export function Headlines({ total, previous }: Props) {
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 6, md: 3 }}>
        <Headline
          label="Spend"
          exact={formatExactMoney(total.amount)}
          note={<BudgetLine />}
          change={previous && changed(total, previous, ({ amount }) => chartValue(amount))}
          before={previous && formatMoney(previous.amount)}
        >
          {formatMoney(total.amount)}
        </Headline>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 3.5 }} order={{ base: 3, md: 2 }}>
        <PerMillion total={total} />
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 3.5 }} order={{ base: 4, md: 3 }}>
        <Headline
          label="Tokens"
          exact={formatCount(tokensOf(total))}
          note={`${formatCompact(total.prompt_tokens)} in (${formatCompact(total.cached_tokens)} cached), ${formatCompact(total.completion_tokens)} out`}
          change={previous && changed(total, previous, tokensOf)}
          before={previous && formatCompact(tokensOf(previous))}
        >
          {formatCompact(tokensOf(total))}
        </Headline>
      </Grid.Col>
      <Grid.Col span={{ base: 6, md: 2 }} order={{ base: 2, md: 4 }}>
        <Headline
          label="Requests"
          exact={formatCount(total.requests)}
          note={`device time ${formatSeconds(total.device_seconds)}`}
          change={previous && changed(total, previous, ({ requests }) => requests)}
          before={previous && formatCompact(previous.requests)}
        >
          {formatCompact(total.requests)}
        </Headline>
      </Grid.Col>
    </Grid>
  );
}

/** null where there was nothing before. */
function changed(
  now: UsageNumbers,
  before: UsageNumbers,
  value: (numbers: UsageNumbers) => number,
): string | null {
  return changeWords(value(now), value(before));
}

interface HeadlineProps {
  label: string;
  exact: string;
  note: ReactNode;
  change: string | null;
  before: string | null;
  children: string;
}

function Headline({ label, exact, note, change, before, children }: HeadlineProps) {
  return (
    <Card withBorder h="100%" component="section" aria-label={label}>
      <Text size="sm" c="dimmed" fw={500}>
        {label}
      </Text>
      <Tooltip label={exact} position="bottom-start">
        <Text
          fz={{ base: "1.25rem", sm: "1.7rem" }}
          fw={650}
          lh={1.3}
          className="figures"
          w="fit-content"
        >
          {children}
        </Text>
      </Tooltip>
      {before && (
        <Text size="xs" fw={600} className="figures">
          {change ? `${change}, before ${before}` : "nothing before"}
        </Text>
      )}
      <Text size="xs" c="dimmed" component="div" className="figures">
        {note}
      </Text>
    </Card>
  );
}

/** The number the product is about: what a million tokens were charged at, beside what they took to make. */
function PerMillion({ total }: { total: UsageNumbers }) {
  const pairs = [
    { label: "price", value: total.amount_per_1m },
    { label: "cost", value: total.cost_per_1m },
  ];
  return (
    <Card withBorder h="100%" component="section" aria-label="Per 1M tokens">
      <Text size="sm" c="dimmed" fw={500}>
        Per 1M tokens
      </Text>
      <Group gap="lg">
        {pairs.map(({ label, value }) => (
          <Tooltip
            key={label}
            label={value ? formatExactMoney(value) : "no tokens"}
            position="bottom-start"
          >
            <div>
              <Text fz={{ base: "1.25rem", sm: "1.7rem" }} fw={650} lh={1.3} className="figures">
                {value ? formatMoney(value) : "–"}
              </Text>
              <Text size="xs" c="dimmed">
                {label === "price" ? "price paid" : "device cost"}
              </Text>
            </div>
          </Tooltip>
        ))}
      </Group>
    </Card>
  );
}
