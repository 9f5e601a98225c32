/** Exact decimals in strings, as the server sends them. `Intl` formats such strings without a float in between. */
type Decimal = Intl.StringNumericLiteral;

const DECIMAL = /^-?\d+(\.\d+)?$/;

const LEDGER_DIGITS = 12;
const SHOWN_DIGITS = 3;

/** One formatter per number of decimals, 0 to 12; never fewer than cents. */
const formats = Array.from(
  { length: LEDGER_DIGITS + 1 },
  (_, digits) =>
    new Intl.NumberFormat("en-US", {
      style: "currency",
      currency: "USD",
      minimumFractionDigits: 2,
      maximumFractionDigits: Math.max(digits, 2),
    }),
);

function decimal(value: string): Decimal {
  if (!DECIMAL.test(value)) throw new Error(`not a decimal: ${value}`);
  return value as Decimal;
}

function rounded(value: string, digits: number): string {
  const format = formats[Math.min(digits, LEDGER_DIGITS)];
  if (!format) throw new Error(`no format with ${digits} decimals`);
  return format.format(decimal(value));
}

/** "$1,234.50", "$0.000123": cents, or three significant digits where cents would say nothing. */
export function formatMoney(value: string): string {
  const smallFraction = /^-?0+\.(0*)[1-9]/.exec(value);
  return rounded(value, smallFraction ? (smallFraction[1] ?? "").length + SHOWN_DIGITS : 2);
}

/** Every digit the ledger holds. */
export function formatExactMoney(value: string): string {
  return rounded(value, LEDGER_DIGITS);
}

/** A plain number for places where only a position matters, such as a chart's axis. */
export function chartValue(value: string): number {
  return Number(decimal(value));
}
