// @vitest-environment node
import { describe, expect, it } from "vitest";
import { formatBytes, formatCompact, formatCount, formatSeconds, plural } from "./numbers";
import { formatAgo } from "./time";

describe("numbers", () => {
  it("groups thousands and shortens large counts", () => {
    expect(formatCount(1_234_567)).toBe("1,234,567");
    expect(formatCompact(9_999)).toBe("9,999");
    expect(formatCompact(1_234_567)).toBe("1.2M");
  });

  it("names sizes", () => {
    expect(formatBytes(999)).toBe("999 B");
    expect(formatBytes(937_056)).toBe("937 kB");
    expect(formatBytes(4_500_000)).toBe("4.5 MB");
  });

  it("shows short and long device time", () => {
    expect(formatSeconds("0.001234567")).toBe("0.00123 s");
    expect(formatSeconds("4321.25")).toBe("4,321.3 s");
    expect(formatSeconds("78408.9")).toBe("21.8 h");
  });

  it("counts things", () => {
    expect(plural(1, "version")).toBe("1 version");
    expect(plural(0, "version")).toBe("0 versions");
  });
});

it("says how long ago", () => {
  const now = Date.parse("2026-03-08T12:00:00Z");
  expect(formatAgo("2026-03-08T11:59:40Z", now)).toBe("just now");
  expect(formatAgo("2026-03-08T11:20:00Z", now)).toBe("40 minutes ago");
  expect(formatAgo("2026-03-10T12:00:00Z", now)).toBe("in 2 days");
  expect(formatAgo("2025-01-01T12:00:00Z", now)).toBe("Jan 1, 2025");
});
