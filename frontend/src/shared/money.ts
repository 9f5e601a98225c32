import { perLocale } from "./locale";

/** Exact decimals in strings, as the server sends them. `Intl` formats such strings without a float in between. */
type Decimal = Intl.StringNumericLiteral;

const DECIMAL = /^-?\d+(\.\d+)?$/;

const LEDGER_DIGITS = 12;
const SHOWN_DIGITS = 3;

let currency = "USD";

/** An ISO 4217 code: what every amount of this installation is in. Its session tells. */
export function setCurrency(code: string) {
  currency = code;
}

/** There is one currency here, so that no reader needs its dollar spelt as "US$", which would not fit a table. */
function money(options: Intl.NumberFormatOptions) {
  return perLocale(
    (locale) =>
      new Intl.NumberFormat(locale, {
        style: "currency",
        currency,
        currencyDisplay: "narrowSymbol",
        ...options,
      }),
    () => currency,
  );
}

function moneyOf(minimumFractionDigits: number, maximumFractionDigits: number) {
  return money({ minimumFractionDigits, maximumFractionDigits });
}

const cents = moneyOf(2, 2);
const exact = moneyOf(2, LEDGER_DIGITS);
const decimals = Array.from({ length: LEDGER_DIGITS + 1 }, (_, digits) => moneyOf(digits, digits));
const estimate = money({ maximumSignificantDigits: 2 });
const rounded = money({ maximumSignificantDigits: 3 });

function decimal(value: string): Decimal {
  if (!DECIMAL.test(value)) throw new Error(`not a decimal: ${value}`);
  return value as Decimal;
}

/** Decimals that show three significant digits of an amount below 1; null where hundredths say it all. */
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

/** "$": what stands before or behind an amount. */
export function currencySymbol(): string {
  const parts = cents().formatToParts(0);
  return parts.find(({ type }) => type === "currency")?.value ?? currency;
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
