// @vitest-environment node
import { expect, it } from "vitest";
import { roleCan } from "../session/permissions";
import { amountProblem, optionalAmountProblem } from "../shared/decimalInput";
import { keyState } from "./state";

const key = {
  id: "key_1",
  name: "k",
  prefix: "abc",
  last4: "1234",
  scopes: [],
  created_at: "2026-03-01T00:00:00Z",
  expires_at: null,
  revoked_at: null,
  last_used_at: null,
  created_by: null,
};
const NOW = Date.parse("2026-03-08T12:00:00Z");

it("tells what a key is good for", () => {
  expect(keyState(key, NOW)).toBe("active");
  expect(keyState({ ...key, expires_at: "2026-03-08T12:00:00Z" }, NOW)).toBe("expired");
  expect(keyState({ ...key, expires_at: "2026-03-08T12:00:01Z" }, NOW)).toBe("active");
  expect(keyState({ ...key, revoked_at: "2026-03-08T11:00:00Z" }, NOW)).toBe("revoked");
});

it("opens to a role what the server allows it", () => {
  expect(roleCan("developer", "keys")).toBe(true);
  expect(roleCan("developer", "billing:read")).toBe(false);
  expect(roleCan("billing", "adapters:read")).toBe(false);
  expect(roleCan("viewer", "adapters:write")).toBe(false);
});

it("takes dollars as text", () => {
  expect(amountProblem("2.50")).toBeNull();
  expect(amountProblem("0.000001")).toBeNull();
  for (const wrong of ["", "-1", "1e3", "1.1234567", "$2"]) {
    expect(amountProblem(wrong)).toContain("at most 6 decimals");
  }
  expect(optionalAmountProblem(" ")).toBeNull();
});
