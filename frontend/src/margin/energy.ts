import { formatMoney } from "../shared/money";
import { formatShort } from "../shared/numbers";

const JOULES_PER_KWH = 3_600_000;

/** "1.25 kWh of energy", "1.25 kWh of energy, $0.375 of it"; null where nobody counts. */
export function energyText(joules: string | null, cost: string | null): string | null {
  if (joules === null) return null;
  const amount = `${formatShort(Number(joules) / JOULES_PER_KWH)} kWh of energy`;
  return cost === null ? amount : `${amount}, ${formatMoney(cost)} of it`;
}
