// @vitest-environment node
import { expect, it } from "vitest";
import { roleCan } from "../session/permissions";
import { amountProblem, optionalAmountProblem } from "../shared/decimalInput";
import { aKey } from "../test/samples";
import { reachBody, reachOf, reachWords } from "./reach";
import { isInGrace, keyState } from "./state";

const key = aKey({ name: "k", scopes: [] });
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

it("takes an amount as text", () => {
  expect(amountProblem("2.50")).toBeNull();
  expect(amountProblem("0.000001")).toBeNull();
  for (const wrong of ["", "-1", "1e3", "1.1234567", "$2"]) {
    expect(amountProblem(wrong)).toContain("at most 6 decimals");
  }
  expect(optionalAmountProblem(" ")).toBeNull();
});

it("knows whether the text before a rotation still works", () => {
  expect(isInGrace(key, NOW)).toBe(false);
  expect(isInGrace({ ...key, old_until: "2026-03-08T12:00:01Z" }, NOW)).toBe(true);
  expect(isInGrace({ ...key, old_until: "2026-03-08T12:00:00Z" }, NOW)).toBe(false);
});

it("says what a key is held to", () => {
  expect(reachWords(key)).toBe("");
  expect(reachWords({ ...key, allowed_models: [] })).toBe("no model");
  const held = { ...key, allowed_models: ["pirate"], allowed_networks: ["10.0.0.0/8"] };
  expect(reachWords(held)).toBe("only pirate; only from 10.0.0.0/8");
  expect(reachBody(reachOf(held))).toEqual({
    allowed_models: ["pirate"],
    allowed_networks: ["10.0.0.0/8"],
  });
  expect(reachBody(reachOf(key))).toEqual({ allowed_models: null, allowed_networks: null });
});
