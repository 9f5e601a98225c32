import { renderHook } from "@testing-library/react";
import { act } from "react";
import { describe, expect, it } from "vitest";
import { modelGroups } from "../playground/models";
import { anAdapter, aVersion } from "../test/samples";
import { useAliasForm } from "./useAliasForm";
import { receivedShare, servingText, trafficShare } from "./versions";

const two = [aVersion({ id: "adv_2", number: 2 }), aVersion()];
const canary = {
  splits: [
    { version: 1, weight: 9 },
    { version: 2, weight: 1 },
  ],
  follows_newest: false,
  rolls_back_to: null,
};

describe("what an alias serves", () => {
  it("reads weights as shares", () => {
    const adapter = anAdapter({ versions: two, alias: canary });
    expect(servingText(adapter)).toBe("v1 90% · v2 10%");
    expect(trafficShare(adapter, 2)).toBe(10);
    expect(trafficShare(adapter, 3)).toBe(0);
    expect(servingText(anAdapter({ alias: null }))).toBeNull();
  });

  it("starts the dialogue from what holds now", () => {
    const { result } = renderHook(() => useAliasForm(anAdapter({ versions: two, alias: canary })));
    expect(result.current.choice).toEqual({
      follows_newest: false,
      splits: [
        { version: 1, weight: 90 },
        { version: 2, weight: 10 },
      ],
    });
    act(() => result.current.setMode("newest"));
    expect(result.current.choice).toEqual({ follows_newest: true });
    act(() => result.current.setMode("one"));
    act(() => result.current.setMain("2"));
    expect(result.current.choice).toEqual({
      follows_newest: false,
      splits: [{ version: 2, weight: 100 }],
    });
  });
});

it("says how much of an upload is there", () => {
  const file = { name: "w", size: 8, sha256: null, received_bytes: 6, ranges: [[0, 6]] };
  expect(receivedShare(aVersion({ files: [file, { ...file, received_bytes: 0 }] }))).toBe(6 / 16);
  expect(receivedShare(aVersion())).toBeNull();
});

it("offers the playground what the door answers to", () => {
  const adapters = [
    anAdapter({ versions: two }),
    anAdapter({ name: "sql" }),
    anAdapter({ name: "raw", alias: null, versions: [aVersion({ state: "checking" })] }),
  ];
  const shared = [
    { id: "adp_9", model: "globex/poet", owner: "globex", base_model: "base", versions: [1] },
  ];
  expect(modelGroups(adapters, shared, "base")).toEqual([
    { group: "Adapters", items: ["pirate", "sql"] },
    { group: "Shared with you", items: ["globex/poet"] },
    { group: "Pinned versions", items: ["pirate@2", "pirate@1"] },
    { group: "Base model", items: ["base"] },
  ]);
});
