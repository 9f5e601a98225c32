import { formatMoney } from "../shared/money";
import { useBalance } from "./queries";

/** The month's budget beside the month's spend. Quiet where the role may not read it. */
export function BudgetLine() {
  const balance = useBalance();
  if (!balance.data) return "in the chosen time";
  const { spent_this_period: spent, budget } = balance.data;
  return budget
    ? `this month ${formatMoney(spent)} of ${formatMoney(budget)}`
    : `this month ${formatMoney(spent)}, no budget set`;
}
