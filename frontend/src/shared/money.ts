import { numberFormat } from "./locale";

/** Exact decimals in strings, as the server sends them. `Intl` formats such strings without a float in between. */
type Decimal = Intl.StringNumericLiteral;

const DECIMAL = /^-?\d+(\.\d+)?$/;

const LEDGER_DIGITS = 12;
const SHOWN_DIGITS = 3;

/** There is one kind of dollar here, so that no reader needs it spelt as "US$", which would not fit a table. */
function dollars(options: Intl.NumberFormatOptions) {
  return numberFormat({
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    ...options,
  });
}

function dollarsOf(minimumFractionDigits: number, maximumFractionDigits: number) {
  return dollars({ minimumFractionDigits, maximumFractionDigits });
}

const cents = dollarsOf(2, 2);
const exact = dollarsOf(2, LEDGER_DIGITS);
const decimals = Array.from({ length: LEDGER_DIGITS + 1 }, (_, digits) =>
  dollarsOf(digits, digits),
);
const estimate = dollars({ maximumSignificantDigits: 2 });
const rounded = dollars({ maximumSignificantDigits: 3 });

function decimal(value: string): Decimal {
  if (!DECIMAL.test(value)) throw new Error(`not a decimal: ${value}`);
  return value as Decimal;
}

/** Decimals that show three significant digits of an amount below a dollar; null where cents say it all. */
function decimalsOf(value: string): number | null {
  const [, zeros = "", digits = ""] = /^-?0+\.(0*)([1-9]\d*?)0*$/.exec(value) ?? [];
  const isWholeCents = zeros.length + digits.length <= 2;
  return isWholeCents ? null : Math.min(zeros.length + SHOWN_DIGITS, LEDGER_DIGITS);
}

/** "$1,234.50", "$0.50", "$0.000123". */
export function formatMoney(value: string): string {
  const digits = decimalsOf(value);
  const format = digits === null ? cents : (decimals[digits] ?? exact);
  return format().format(decimal(value));
}

/** Every digit the ledger holds. */
export function formatExactMoney(value: string): string {
  return exact().format(decimal(value));
}

/** A plain number for places where only a position matters, such as a chart's axis. */
export function chartValue(value: string): number {
  return Number(decimal(value));
}

/** "$0.00123": what a position on a chart stands for. */
export function formatChartValue(value: number): string {
  return rounded().format(value);
}

/** "about $0.0012": of a reckoning that is in no book. */
export function formatEstimate(value: number): string {
  return `about ${estimate().format(value)}`;
}
