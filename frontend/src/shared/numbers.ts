const whole = new Intl.NumberFormat("en-US");
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
const seconds = new Intl.NumberFormat("en-US", {
  maximumFractionDigits: 1,
  maximumSignificantDigits: 3,
  roundingPriority: "morePrecision",
});

export function formatCount(value: number): string {
  return whole.format(value);
}

export function formatCompact(value: number): string {
  return value < 10_000 ? whole.format(value) : compact.format(value);
}

const SECONDS_PER_HOUR = 3600;

/** Device time from an exact decimal string of seconds: "0.00123 s", "21.8 h". */
export function formatSeconds(value: string): string {
  const amount = Number(value);
  if (amount < 2 * SECONDS_PER_HOUR) return `${seconds.format(amount)} s`;
  return `${seconds.format(amount / SECONDS_PER_HOUR)} h`;
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

const tenths = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

/** "8.4 ms", "312 ms", "1.24 s". */
export function formatMilliseconds(value: number): string {
  if (value < 100) return `${tenths.format(value)} ms`;
  return value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(2)} s`;
}

const share = new Intl.NumberFormat("en-US", { style: "percent", maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3, notation: "compact" });

/** 0.256 is "26%". */
export function formatShare(part: number): string {
  return share.format(part);
}

/** Three digits, whatever the size: "0.0123", "41.7", "12.3K". */
export function formatShort(value: number): string {
  return short.format(value);
}
