import { useState } from "react";
import { useLocation } from "react-router";
import { useAdapters, useSharedAdapters } from "../adapters/queries";
import { useTenant } from "../session/context";
import type { Column } from "./Lanes";
import { modelGroups } from "./models";
import { fromHash, MOST_COLUMNS, type Shared } from "./permalink";
import { FIRST_SETTINGS, type Settings } from "./settings";
import { useLane } from "./useLane";

function useLanes() {
  // As many as there may be columns: hooks cannot come and go.
  return [useLane(), useLane(), useLane(), useLane()];
}

/** What the page holds: the columns, how they are asked, and what is being written. */
export function usePlayground() {
  const { session, tenantId } = useTenant();
  const { hash } = useLocation();
  const [opened] = useState(() => fromHash(hash));
  const base = session.base_model.name;
  const adapters = useAdapters();
  const shared = useSharedAdapters();
  const groups = modelGroups(adapters.data ?? [], shared.data ?? [], base);
  const first = groups[0]?.items[0] ?? base;
  const [chosen, setChosen] = useState<string[]>(opened?.models ?? []);
  // Until somebody chooses: the first adapter beside the base model.
  const models = chosen.length > 0 ? chosen : [...new Set([first, base])];
  const [settings, setSettings] = useState<Settings>(opened?.settings ?? FIRST_SETTINGS);
  const [prompt, setPrompt] = useState(opened?.prompt ?? "");
  const lanes = useLanes();
  const columns: Column[] = models.flatMap((model, index) => {
    const lane = lanes[index];
    return lane ? [{ model, lane }] : [];
  });
  const reset = () => {
    for (const lane of lanes) lane.reset();
  };
  const setModels = (next: string[]) => {
    setChosen(next);
    reset();
  };
  const state: Shared = { tenant: tenantId, models, settings, prompt };
  return {
    columns,
    groups,
    settings,
    prompt,
    setPrompt,
    /** What a link to this page opens. */
    state,
    /** The link that was opened is of another tenant. */
    isForeign: opened !== null && opened.tenant !== tenantId,
    opened,
    canAdd: models.length < MOST_COLUMNS,
    addColumn: () => setModels([...models, base]),
    setModel: (at: number, model: string) =>
      setModels(models.map((old, index) => (index === at ? model : old))),
    removeColumn: (at: number) => setModels(models.filter((_, index) => index !== at)),
    changeSettings: (changes: Partial<Settings>) => {
      setSettings((old) => ({ ...old, ...changes }));
      if (changes.mode) reset();
    },
    reset,
  };
}
