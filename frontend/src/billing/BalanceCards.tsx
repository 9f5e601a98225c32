import { Card, Progress, SimpleGrid, Text, Tooltip } from "@mantine/core";
import type { Balance } from "../api/types";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { chartValue, formatEstimate, formatExactMoney, formatMoney } from "../shared/money";
import { formatShare } from "../shared/numbers";
import { useBalance } from "../usage/queries";
import { forecastOf } from "./forecast";

export function BalanceCards() {
  const balance = useBalance();
  if (balance.isPending) return <LoadingCards count={1} height={110} />;
  if (balance.isError) {
    return (
      <ErrorState
        error={balance.error}
        what="The balance could not be read"
        onRetry={() => balance.refetch()}
      />
    );
  }
  const { owed, credit, held } = balance.data;
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
      <Spent balance={balance.data} />
      <Amount label="Owed" value={owed} note="charged and not yet paid" />
      <Amount label="Credit" value={credit} note="used before anything is owed" />
      <Amount
        label="Held"
        value={held}
        note="for answers under way; what they do not use comes back"
      />
    </SimpleGrid>
  );
}

function Spent({ balance }: { balance: Balance }) {
  const { spent_this_period: spent, budget, budget_period: period } = balance;
  const forecast = period === "month" ? forecastOf(spent, new Date()) : null;
  const note = [
    budget ? `of ${formatMoney(budget)}` : "no budget set",
    forecast !== null &&
      chartValue(spent) > 0 &&
      `${formatEstimate(forecast)} at the end, at this pace`,
  ];
  const label = period === "month" ? "Spent this month" : "Spent so far";
  return (
    <Amount label={label} value={spent} note={note.filter(Boolean).join("; ")}>
      {budget && <BudgetBar spent={spent} budget={budget} />}
    </Amount>
  );
}

function BudgetBar({ spent, budget }: { spent: string; budget: string }) {
  const total = chartValue(budget);
  const share = total > 0 ? Math.min(100, (100 * chartValue(spent)) / total) : 100;
  return (
    <Progress
      value={share}
      color={share >= 80 ? "orange" : "veneer"}
      aria-label={`${formatShare(share / 100)} of the budget is spent`}
      mt="xs"
    />
  );
}

interface Props {
  label: string;
  value: string;
  note: string;
  children?: React.ReactNode;
}

function Amount({ label, value, note, children }: Props) {
  return (
    <Card withBorder component="section" aria-label={label}>
      <Text size="sm" c="dimmed" fw={500}>
        {label}
      </Text>
      <Tooltip label={formatExactMoney(value)} position="bottom-start">
        <Text fz="1.7rem" fw={650} lh={1.3} className="figures" w="fit-content">
          {formatMoney(value)}
        </Text>
      </Tooltip>
      <Text size="xs" c="dimmed">
        {note}
      </Text>
      {children}
    </Card>
  );
}
