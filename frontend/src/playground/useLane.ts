import { useCallback, useEffect, useRef, useState } from "react";
import {
  type Answer,
  ended,
  failed,
  isRunning,
  messagesFor,
  newAnswer,
  stopped,
  type Turn,
  withChunk,
} from "./answer";
import { streamAnswer } from "./chat";
import { chatBody, completionBody, pathOf, type RequestBody } from "./request";
import type { Settings } from "./settings";
import { usePlaygroundKey } from "./usePlaygroundKey";

export interface Lane {
  turns: Turn[];
  running: boolean;
  send: (model: string, prompt: string, settings: Settings) => Promise<void>;
  stop: () => void;
  reset: () => void;
}

/** A completion goes on with its prompt and knows nothing of what was said before. */
function bodyFor(model: string, prompt: string, turns: Turn[], settings: Settings): RequestBody {
  return settings.mode === "chat"
    ? chatBody(model, messagesFor(settings.system, turns, prompt), settings)
    : completionBody(model, prompt, settings);
}

/** One conversation with one model. */
export function useLane(): Lane {
  const giveKey = usePlaygroundKey();
  const [turns, setTurns] = useState<Turn[]>([]);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);

  const send = useCallback(
    async (model: string, prompt: string, settings: Settings) => {
      const controller = new AbortController();
      abort.current = controller;
      const id = turns.length;
      const update = (change: (answer: Answer) => Answer) =>
        setTurns((all) =>
          all.map((turn) => (turn.id === id ? { ...turn, answer: change(turn.answer) } : turn)),
        );
      const path = pathOf(settings);
      const body = bodyFor(model, prompt, turns, settings);
      setTurns([...turns, { id, prompt, path, body, answer: newAnswer(performance.now()) }]);
      try {
        const key = await giveKey();
        update((answer) => ({ ...answer, startedAt: performance.now() }));
        for await (const chunk of streamAnswer(path, body, key, controller.signal)) {
          const now = performance.now();
          update((answer) => withChunk(answer, chunk, now));
        }
        update(ended);
      } catch (error) {
        update((answer) => (controller.signal.aborted ? stopped(answer) : failed(answer, error)));
      }
    },
    [turns, giveKey],
  );
  const stop = useCallback(() => abort.current?.abort(), []);
  const reset = useCallback(() => {
    abort.current?.abort();
    setTurns([]);
  }, []);
  return { turns, running: turns.some(({ answer }) => isRunning(answer)), send, stop, reset };
}
