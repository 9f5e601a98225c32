import { dateFormat, viewerLocale } from "./locale";

const dateTime = dateFormat({
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "numeric",
  minute: "2-digit",
  timeZoneName: "short",
});
const date = dateFormat({ dateStyle: "medium" });
const utcDate = dateFormat({ dateStyle: "medium", timeZone: "UTC" });
const clock = dateFormat({ timeStyle: "medium" });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** "8 Mar 2026, 14:25 UTC": in the viewer's zone, which it names. */
export function formatDateTime(iso: string): string {
  return dateTime().format(new Date(iso));
}

export function formatDate(iso: string): string {
  return date().format(new Date(iso));
}

/** Of a day as such. */
export function formatUtcDate(iso: string): string {
  return utcDate().format(new Date(iso));
}

/** "1 – 31 Mar 2026": the days of a billing period, whose end is not part of it, in the zone that it keeps. */
export function formatPeriod(start: string, end: string, timeZone: string): string {
  const days = new Intl.DateTimeFormat(viewerLocale(), { dateStyle: "medium", timeZone });
  return days.formatRange(new Date(start), new Date(new Date(end).getTime() - 1));
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

/** "14:03:09", of milliseconds since the epoch. */
export function formatClock(at: number): string {
  return clock().format(at);
}
