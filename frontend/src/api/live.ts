import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { isLong } from "./pages";
import type { Fleet } from "./types";

export type LiveEvent =
  | { event: "fleet.frame"; data: Fleet }
  | { event: "adapter.state"; data: { adapter_id: string; version_id: string; state: string } }
  | {
      event: "usage.recorded" | "key.changed" | "batch.changed" | "evaluation.changed";
      data: Record<string, unknown>;
    };

const EVENTS = [
  "fleet.frame",
  "adapter.state",
  "usage.recorded",
  "key.changed",
  "batch.changed",
  "evaluation.changed",
];

/** A socket that is kept open. */
export interface Socket {
  /** What the server is to send besides the tenant's events; said again whenever the socket is back. */
  watch: (topics: string[]) => void;
  close: () => void;
}

/** Where the newest frame of the fleet is kept. */
export const FLEET = ["operator", "fleet"];

/** What events are about. */
const RESOURCES = ["adapters", "keys", "usage", "timeseries", "balance", "batches", "evaluations"];
/** Of these what changes in the moment between a page and its socket. */
const FIRST = ["adapters", "keys"];

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 15_000;

/** Which cached answers an event makes stale; the second part of a query key names the resource. */
export function staleResources(event: string): string[] {
  if (event.startsWith("adapter.")) return ["adapters"];
  if (event.startsWith("usage.")) return ["usage", "timeseries", "balance"];
  if (event.startsWith("key.")) return ["keys"];
  if (event.startsWith("batch.")) return ["batches"];
  if (event.startsWith("evaluation.")) return ["evaluations"];
  return [];
}

/** null: no event of ours, or one of a newer server. */
export function parseEvent(text: string): LiveEvent | null {
  try {
    const value: unknown = JSON.parse(text);
    const isOurs =
      typeof value === "object" &&
      value !== null &&
      "event" in value &&
      "data" in value &&
      EVENTS.includes(String(value.event));
    return isOurs ? (value as LiveEvent) : null;
  } catch {
    return null;
  }
}

function eventsUrl(tenantId: string | null): string {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const query = tenantId ? `?tenant=${encodeURIComponent(tenantId)}` : "";
  return `${scheme}://${location.host}/ws/events${query}`;
}

/** Opens the event socket and keeps it open; calls `onEvent` for each event, `onState` on open and close. */
export function openEvents(
  url: string,
  onEvent: (event: LiveEvent) => void,
  onState: (live: boolean) => void,
): Socket {
  let socket: WebSocket | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wait = FIRST_RETRY_MS;
  let closed = false;
  let topics: string[] = [];

  function tellTopics(): void {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ watch: topics }));
  }

  function connect(): void {
    socket = new WebSocket(url);
    socket.onopen = () => {
      wait = FIRST_RETRY_MS;
      if (topics.length > 0) tellTopics();
      onState(true);
    };
    socket.onmessage = ({ data }) => {
      const event = parseEvent(String(data));
      if (event) onEvent(event);
    };
    socket.onclose = () => {
      onState(false);
      if (closed) return;
      timer = setTimeout(connect, wait);
      wait = Math.min(wait * 2, LAST_RETRY_MS);
    };
  }

  connect();
  return {
    watch: (wanted) => {
      topics = wanted;
      tellTopics();
    },
    close: () => {
      closed = true;
      clearTimeout(timer);
      socket?.close();
    },
  };
}

export interface Live {
  /** Whether the socket is up: pages poll while it is not. */
  up: boolean;
  /** Frames of the fleet go into the cache until the function that comes back is called. */
  watchFleet: () => () => void;
}

/** Keeps the cache fresh from the socket: of a tenant, and of an operator's fleet. */
export function useLiveEvents(tenantId: string | null, isOperator: boolean): Live {
  const queries = useQueryClient();
  const [up, setUp] = useState(false);
  const socket = useRef<Socket | null>(null);
  const watchers = useRef(0);
  const tellTopics = useCallback(
    () => socket.current?.watch(watchers.current > 0 ? ["fleet"] : []),
    [],
  );
  useEffect(() => {
    if (!tenantId && !isOperator) return;
    const refresh = (resource: string) =>
      queries.invalidateQueries({
        queryKey: [tenantId, resource],
        predicate: ({ state }) => !isLong(state.data),
      });
    let wasUp = false;
    const opened = openEvents(
      eventsUrl(tenantId),
      (event) => {
        if (event.event === "fleet.frame") queries.setQueryData(FLEET, event.data);
        else staleResources(event.event).forEach(refresh);
      },
      (isUp) => {
        setUp(isUp);
        // What happened while the socket was away is read once it is back.
        if (isUp) (wasUp ? RESOURCES : FIRST).forEach(refresh);
        wasUp ||= isUp;
      },
    );
    socket.current = opened;
    tellTopics();
    return () => {
      socket.current = null;
      opened.close();
    };
  }, [tenantId, isOperator, queries, tellTopics]);
  const watchFleet = useCallback(() => {
    watchers.current += 1;
    tellTopics();
    return () => {
      watchers.current -= 1;
      tellTopics();
    };
  }, [tellTopics]);
  return { up, watchFleet };
}
