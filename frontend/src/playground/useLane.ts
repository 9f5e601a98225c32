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
import { streamChat } from "./chat";
import { usePlaygroundKey } from "./usePlaygroundKey";

export interface Settings {
  system: string;
  temperature: number;
  maxTokens: number;
}

export interface Lane {
  turns: Turn[];
  running: boolean;
  send: (model: string, prompt: string, settings: Settings) => Promise<void>;
  stop: () => void;
  reset: () => void;
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
      setTurns([...turns, { id, prompt, model, answer: newAnswer(performance.now()) }]);
      const request = {
        model,
        messages: messagesFor(settings.system, turns, prompt),
        temperature: settings.temperature,
        max_tokens: settings.maxTokens,
      };
      try {
        const key = await giveKey();
        update((answer) => ({ ...answer, startedAt: performance.now() }));
        for await (const chunk of streamChat(request, key, controller.signal)) {
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
