import { readyVersions } from "../adapters/versions";
import type { Adapter, SharedAdapter } from "../api/types";

export interface ModelGroup {
  group: string;
  items: string[];
}

/** What the door answers to: aliases that serve something, what others share, then pinned versions where there are several. */
export function modelGroups(
  adapters: Adapter[],
  shared: SharedAdapter[],
  baseModel: string,
): ModelGroup[] {
  const served = adapters.filter(({ alias }) => (alias?.splits.length ?? 0) > 0);
  const pinned = adapters
    .filter((adapter) => readyVersions(adapter).length > 1)
    .flatMap((adapter) => readyVersions(adapter).map(({ number }) => `${adapter.name}@${number}`));
  const groups = [
    { group: "Adapters", items: served.map(({ name }) => name) },
    { group: "Shared with you", items: shared.map(({ model }) => model) },
    { group: "Pinned versions", items: pinned },
    { group: "Base model", items: [baseModel] },
  ];
  return groups.filter(({ items }) => items.length > 0);
}
