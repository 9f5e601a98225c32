// @vitest-environment node
import { afterEach, expect, it, vi } from "vitest";
import { plain } from "../test/plain";
import { stepLabel } from "../usage/range";
import { formatInZone } from "../usage/zone";
import { changeWords } from "./change";
import { viewerLocale } from "./locale";
import { formatEstimate, formatExactMoney, formatMoney } from "./money";
import {
  formatBytes,
  formatCompact,
  formatCount,
  formatMilliseconds,
  formatRate,
  formatShare,
  separators,
} from "./numbers";
import { formatAgo, formatDate, formatDateTime, formatPeriod } from "./time";

afterEach(() => vi.unstubAllGlobals());

const AT = "2026-03-08T13:05:00Z";
function asSeenBy(language: string): string[] {
  vi.stubGlobal("navigator", { language });
  return [
    formatMoney("1234.5"),
    formatMoney("0.000123456"),
    formatExactMoney("0.000912345678"),
    formatEstimate(0.00123),
    formatCount(1_234_567),
    formatCompact(1_234_567),
    formatBytes(4_500_000),
    formatMilliseconds(1_240),
    formatShare(0.256),
    formatRate("8.875"),
    changeWords(112, 100) ?? "",
    formatDate(AT),
    stepLabel("2026-03-08T14", "hour"),
    formatInZone(AT, "Asia/Kolkata"),
  ].map(plain);
}

it("writes for an American", () => {
  expect(asSeenBy("en-US")).toEqual([
    "$1,234.50",
    "$0.000123",
    "$0.000912345678",
    "about $0.0012",
    "1,234,567",
    "1.2M",
    "4.5 MB",
    "1.24 s",
    "26%",
    "8.875%",
    "+12%",
    "Mar 8, 2026",
    "Mar 8, 2:00 PM",
    "Mar 8, 2026, 6:35:00 PM",
  ]);
  expect(separators()).toEqual({ group: ",", decimal: "." });
});

it("writes for a German", () => {
  expect(asSeenBy("de-DE")).toEqual([
    "1.234,50 $",
    "0,000123 $",
    "0,000912345678 $",
    "about 0,0012 $",
    "1.234.567",
    "1,2 Mio.",
    "4,5 MB",
    "1,24 s",
    "26 %",
    "8,875 %",
    "+12 %",
    "08.03.2026",
    "8. März, 14:00",
    "08.03.2026, 18:35:00",
  ]);
  expect(separators()).toEqual({ group: ".", decimal: "," });
});

it("keeps every digit in every locale", () => {
  vi.stubGlobal("navigator", { language: "de-DE" });
  expect(plain(formatExactMoney("9007199254740993.000000000001"))).toBe(
    "9.007.199.254.740.993,000000000001 $",
  );
});

it("names the zone of a time", () => {
  const zone = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" })
    .formatToParts(new Date(AT))
    .find(({ type }) => type === "timeZoneName")?.value;
  vi.stubGlobal("navigator", { language: "en-GB" });
  expect(formatDateTime(AT)).toMatch(
    new RegExp(`8 Mar 2026, \\d\\d:05 ${zone}$`.replace("+", "\\+")),
  );
});

it("says how long ago in the words of the console", () => {
  vi.stubGlobal("navigator", { language: "de-DE" });
  expect(formatAgo(AT, Date.parse("2026-03-08T13:08:00Z"))).toBe("3 minutes ago");
});

it("knows no locale where the system names none", () => {
  vi.stubGlobal("navigator", { language: "en-US@posix" });
  expect(viewerLocale()).toBeUndefined();
  expect(formatCount(0)).toBe("0");
});

it("names a billing period by its own days, in the zone that it keeps", () => {
  vi.stubGlobal("navigator", { language: "en-US" });
  const october = formatPeriod("2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z", "Europe/Paris");
  expect(october.replace(/[\u2009\u202f\u00a0]/g, " ")).toBe("Oct 1 – 31, 2026");
});
