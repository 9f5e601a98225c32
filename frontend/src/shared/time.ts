const dateTime = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const date = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

export function formatDateTime(iso: string): string {
  return dateTime.format(new Date(iso));
}

export function formatDate(iso: string): string {
  return date.format(new Date(iso));
}

/** "3 minutes ago", "in 2 days"; the date itself beyond a month. */
export function formatAgo(iso: string, now = Date.now()): string {
  const offset = (new Date(iso).getTime() - now) / 1000;
  if (Math.abs(offset) > 30 * 86_400) return formatDate(iso);
  for (const [unit, size] of STEPS) {
    if (Math.abs(offset) >= size) return relative.format(Math.round(offset / size), unit);
  }
  return "just now";
}

const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

/** "14:03:09", of milliseconds since the epoch. */
export function formatClock(at: number): string {
  return clock.format(at);
}
