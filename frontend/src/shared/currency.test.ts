// @vitest-environment node
import { afterEach, expect, it, vi } from "vitest";
import { plain } from "../test/plain";
import {
  currencySymbol,
  formatChartValue,
  formatEstimate,
  formatExactMoney,
  formatMoney,
  setCurrency,
} from "./money";

afterEach(() => {
  vi.unstubAllGlobals();
  setCurrency("USD");
});

function everyWay(language: string): string[] {
  vi.stubGlobal("navigator", { language });
  return [
    formatMoney("1234.5"),
    formatMoney("0.000123456"),
    formatExactMoney("0.000912345678"),
    formatEstimate(0.00123),
    formatChartValue(1.5),
    currencySymbol(),
  ].map(plain);
}

it.each([
  ["EUR", "en-US", ["€1,234.50", "€0.000123", "€0.000912345678", "about €0.0012", "€1.5", "€"]],
  [
    "EUR",
    "de-DE",
    ["1.234,50 €", "0,000123 €", "0,000912345678 €", "about 0,0012 €", "1,5 €", "€"],
  ],
  ["CAD", "en-US", ["$1,234.50", "$0.000123", "$0.000912345678", "about $0.0012", "$1.5", "$"]],
  [
    "CHF",
    "en-US",
    ["CHF 1,234.50", "CHF 0.000123", "CHF 0.000912345678", "about CHF 0.0012", "CHF 1.5", "CHF"],
  ],
])("writes %s for %s", (code, language, shown) => {
  setCurrency(code);
  expect(everyWay(language)).toEqual(shown);
});

it("follows the currency, not only the locale", () => {
  expect(everyWay("en-US")[0]).toBe("$1,234.50");
  setCurrency("EUR");
  expect(everyWay("en-US")[0]).toBe("€1,234.50");
});
