/** Exact decimals in strings, as the server sends them. `Intl` formats such strings without a float in between. */
type Decimal = Intl.StringNumericLiteral;

const DECIMAL = /^-?\d+(\.\d+)?$/;

const currency = { style: "currency", currency: "USD" } as const;
const headline = new Intl.NumberFormat("en-US", {
  ...currency,
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
  maximumSignificantDigits: 3,
  roundingPriority: "morePrecision",
});
const exact = new Intl.NumberFormat("en-US", {
  ...currency,
  minimumFractionDigits: 2,
  maximumFractionDigits: 12,
});

function decimal(value: string): Decimal {
  if (!DECIMAL.test(value)) throw new Error(`not a decimal: ${value}`);
  return value as Decimal;
}

/** "$1,234.50", "$0.000123": cents, or three significant digits where cents would say nothing. */
export function formatMoney(value: string): string {
  return headline.format(decimal(value));
}

/** Every digit the ledger holds. */
export function formatExactMoney(value: string): string {
  return exact.format(decimal(value));
}

/** A plain number for places where only a position matters, such as a chart's axis. */
export function chartValue(value: string): number {
  return Number(decimal(value));
}
