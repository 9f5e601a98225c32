import { numberFormat, perLocale } from "./locale";

const whole = numberFormat({ maximumFractionDigits: 0 });
const compact = numberFormat({ notation: "compact", maximumFractionDigits: 1 });
const seconds = numberFormat({
  maximumFractionDigits: 1,
  maximumSignificantDigits: 3,
  roundingPriority: "morePrecision",
});
const tenths = numberFormat({ maximumFractionDigits: 1 });
const oneDigit = numberFormat({ minimumFractionDigits: 1, maximumFractionDigits: 1 });
const twoDigits = numberFormat({ minimumFractionDigits: 2, maximumFractionDigits: 2 });
const short = numberFormat({ maximumSignificantDigits: 3, notation: "compact" });
const percent = numberFormat({ style: "percent", maximumFractionDigits: 0 });
const exactPercent = numberFormat({ style: "percent", maximumFractionDigits: 1 });
const rate = numberFormat({ style: "percent", maximumFractionDigits: 4 });
const signedPercent = numberFormat({
  style: "percent",
  maximumFractionDigits: 1,
  signDisplay: "always",
});

export function formatCount(value: number): string {
  return whole().format(value);
}

export function formatCompact(value: number): string {
  return (value < 10_000 ? whole() : compact()).format(value);
}

/** "8.0". */
export function formatTenths(value: number): string {
  return oneDigit().format(value);
}

/** "2.00". */
export function formatHundredths(value: number): string {
  return twoDigits().format(value);
}

const SECONDS_PER_HOUR = 3600;

/** Device time from an exact decimal string of seconds: "0.00123 s", "21.8 h". */
export function formatSeconds(value: string): string {
  const amount = Number(value);
  if (amount < 2 * SECONDS_PER_HOUR) return `${seconds().format(amount)} s`;
  return `${seconds().format(amount / SECONDS_PER_HOUR)} h`;
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? whole() : oneDigit();
  return `${digits.format(value)} ${UNITS[unit]}`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** "8.4 ms", "312 ms", "1.24 s". */
export function formatMilliseconds(value: number): string {
  if (value < 100) return `${tenths().format(value)} ms`;
  return value < 1000 ? `${whole().format(value)} ms` : `${twoDigits().format(value / 1000)} s`;
}

/** 0.256 is "26%". */
export function formatShare(part: number): string {
  return percent().format(part);
}

/** 0.2561 is "25.6%". */
export function formatExactShare(part: number): string {
  return exactPercent().format(part);
}

/** A rate that somebody set, from its percent: "8.875" is "8.875%". */
export function formatRate(percents: string): string {
  return rate().format(Number(percents) / 100);
}

/** 0.256 is "+25.6%", -0.03 is "-3%". */
export function formatChange(part: number): string {
  return signedPercent().format(part);
}

/** Three digits, whatever the size: "0.0123", "41.7", "12.3K". */
export function formatShort(value: number): string {
  return short().format(value);
}

/** What stands between thousands, and before decimals. */
export const separators = perLocale((locale) => {
  const parts = new Intl.NumberFormat(locale).formatToParts(1_234_567.8);
  const of = (type: string) => parts.find((part) => part.type === type)?.value;
  return { group: of("group") ?? "", decimal: of("decimal") ?? "." };
});
