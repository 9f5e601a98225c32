import { useState } from "react";
import type { Adapter, AliasChoice } from "../api/types";
import { readyVersions, trafficShare } from "./versions";

type Mode = "newest" | "one" | "split";

const FIRST_CANARY_PERCENT = 10;

function modeOf({ alias }: Adapter): Mode {
  if (!alias || alias.follows_newest) return "newest";
  return alias.splits.length > 1 ? "split" : "one";
}

/** The state of the alias dialogue, from what the alias says now to the choice to send. */
export function useAliasForm(adapter: Adapter) {
  const ready = readyVersions(adapter).map(({ number }) => String(number));
  const [first, second] = adapter.alias?.splits ?? [];
  const [mode, setMode] = useState<Mode>(modeOf(adapter));
  const [main, setMain] = useState(String(first?.version ?? ready[0] ?? ""));
  const [chosenOther, setOther] = useState(second ? String(second.version) : "");
  const [share, setShare] = useState(
    second ? trafficShare(adapter, second.version) : FIRST_CANARY_PERCENT,
  );
  const others = ready.filter((number) => number !== main);
  const other = others.includes(chosenOther) ? chosenOther : (others[0] ?? "");
  return {
    ready,
    others,
    mode,
    setMode: (value: string) => setMode(value as Mode),
    main,
    setMain,
    other,
    setOther,
    share,
    setShare,
    choice: choiceOf(mode, Number(main), Number(other), share),
  };
}

function choiceOf(mode: Mode, main: number, other: number, share: number): AliasChoice {
  if (mode === "newest") return { follows_newest: true };
  const splits = [{ version: main, weight: mode === "split" ? 100 - share : 100 }];
  if (mode === "split") splits.push({ version: other, weight: share });
  return { follows_newest: false, splits };
}
