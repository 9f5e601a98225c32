// @vitest-environment node
import { expect, it } from "vitest";
import { fromHash, type Shared, toHash } from "./permalink";
import { FIRST_SETTINGS } from "./settings";

const shared: Shared = {
  tenant: "ten_1",
  models: ["pirate", "base"],
  settings: {
    ...FIRST_SETTINGS,
    system: "Sei höflich 🏴‍☠️",
    topP: 0.9,
    seed: 7,
    stop: ["\n\n"],
    form: "schema",
    schema: "{}",
  },
  prompt: "Wo bist du? a+b/c=d",
};

it("opens what was shared, whatever its letters", () => {
  const hash = toHash(shared);
  expect(hash).toMatch(/^#[A-Za-z0-9_-]+$/);
  expect(fromHash(hash)).toEqual(shared);
});

it("takes nothing else for a link", () => {
  for (const hash of ["", "#", "#section", "#e30", toHash([] as unknown as Shared)]) {
    expect(fromHash(hash)).toBeNull();
  }
});

it("keeps what fits of a link that somebody has changed", () => {
  const changed = {
    ...shared,
    models: ["a", 2, "b", "c", "d", "e"],
    settings: { ...shared.settings, temperature: "hot", mode: "shout", seed: 1.5, more: true },
  };
  const opened = fromHash(toHash(changed as unknown as Shared));
  expect(opened?.models).toEqual(["a", "b", "c", "d"]);
  expect(opened?.settings).toEqual({
    ...shared.settings,
    temperature: 0,
    mode: "chat",
    seed: null,
  });
});
