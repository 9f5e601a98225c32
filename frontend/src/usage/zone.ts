import { viewerLocale } from "../shared/locale";

/** Where the viewer is, as an IANA name. */
export function viewerZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

export function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat(undefined, { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** What a clock on the wall shows there: "2026-03-08T14:25:10". */
export function wallClock(at: Date, zone: string): string {
  const parts = new Intl.DateTimeFormat("sv-SE", {
    timeZone: zone,
    dateStyle: "short",
    timeStyle: "medium",
  });
  return parts.format(at).replace(" ", "T");
}

/** "8 Mar 2026, 14:25:10" on the clocks there. */
export function formatInZone(iso: string, zone: string): string {
  return new Intl.DateTimeFormat(viewerLocale(), {
    timeZone: zone,
    dateStyle: "medium",
    timeStyle: "medium",
  }).format(new Date(iso));
}
