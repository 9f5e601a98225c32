// @vitest-environment node
import { describe, expect, it } from "vitest";
import { chartValue, formatExactMoney, formatMoney } from "./money";

describe("formatMoney", () => {
  it.each([
    ["0", "$0.00"],
    ["0.000000000000", "$0.00"],
    ["1234.5", "$1,234.50"],
    ["12.3456", "$12.35"],
    ["0.000123456", "$0.000123"],
    ["0.000000000001", "$0.000000000001"],
    ["0.05", "$0.05"],
    ["0.4", "$0.40"],
    ["0.9996", "$1.000"],
    ["0.1299", "$0.130"],
    ["0.05000", "$0.05"],
    ["0.00500", "$0.00500"],
    ["0.00", "$0.00"],
    ["-3.5", "-$3.50"],
  ])("%s -> %s", (value, shown) => {
    expect(formatMoney(value)).toBe(shown);
  });

  it("refuses what is no decimal", () => {
    expect(() => formatMoney("1e-7")).toThrow("not a decimal: 1e-7");
    expect(() => formatMoney("")).toThrow("not a decimal");
  });
});

describe("formatExactMoney", () => {
  it("keeps every digit that a float would lose", () => {
    expect(Number("9007199254740993")).toBe(9007199254740992);
    expect(formatExactMoney("9007199254740993.000000000001")).toBe(
      "$9,007,199,254,740,993.000000000001",
    );
    expect(formatExactMoney("0.300000000000")).toBe("$0.30");
    expect(formatExactMoney("0.000912345678")).toBe("$0.000912345678");
  });
});

it("gives charts a position", () => {
  expect(chartValue("0.25")).toBe(0.25);
});
