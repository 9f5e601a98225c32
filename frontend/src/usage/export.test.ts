// @vitest-environment node
import { expect, it } from "vitest";
import { aUsage, someNumbers } from "../test/samples";
import { usageCsv, usageFileName } from "./export";

it("exports every digit, and no formula", () => {
  const usage = aUsage({ data: [{ group: "key_1", label: "=cmd()", ...someNumbers() }] });
  expect(usageCsv(usage, "key").split("\r\n")).toEqual([
    "key,key_id,requests,prompt_tokens,cached_tokens,completion_tokens,device_seconds,amount,cost,amount_per_1m,cost_per_1m",
    "'=cmd(),key_1,12,900,300,1100,7.250000000,0.000912345678,0.000805555556,0.456172839000,0.402777778000",
    "",
  ]);
  expect(usageFileName(usage, "key", "csv")).toBe("veneer-usage-by-key-2026-03-01-2026-03-08.csv");
});
