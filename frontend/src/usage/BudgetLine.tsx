import { formatMoney } from "../shared/money";
import { useBalance } from "./queries";

/** The budget beside what is spent of it. Quiet where the role may not read it. */
export function BudgetLine() {
  const balance = useBalance();
  if (!balance.data) return "in the chosen time";
  const { spent_this_period: spent, budget, budget_period: period } = balance.data;
  const when = period === "month" ? "this month" : "so far";
  return budget
    ? `${when} ${formatMoney(spent)} of ${formatMoney(budget)}`
    : `${when} ${formatMoney(spent)}, no budget set`;
}
