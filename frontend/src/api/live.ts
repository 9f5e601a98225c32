import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

export interface LiveEvent {
  event: string;
  data: Record<string, unknown>;
}

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 15_000;

/** Which cached answers an event makes stale; the second part of a query key names the resource. */
export function staleResources(event: string): string[] {
  if (event.startsWith("adapter.")) return ["adapters"];
  if (event.startsWith("usage.")) return ["usage", "timeseries", "balance"];
  if (event.startsWith("key.")) return ["keys"];
  return [];
}

export function parseEvent(text: string): LiveEvent | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || !("event" in value)) return null;
    const { event, data } = value as { event: unknown; data?: Record<string, unknown> };
    return typeof event === "string" ? { event, data: data ?? {} } : null;
  } catch {
    return null;
  }
}

function eventsUrl(tenantId: string): string {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  return `${scheme}://${location.host}/ws/events?tenant=${encodeURIComponent(tenantId)}`;
}

/** Opens the tenant's event socket and keeps it open; calls `onEvent` for each event, `onState` on open and close. */
export function openEvents(
  url: string,
  onEvent: (event: LiveEvent) => void,
  onState: (live: boolean) => void,
): () => void {
  let socket: WebSocket | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wait = FIRST_RETRY_MS;
  let closed = false;

  function connect(): void {
    socket = new WebSocket(url);
    socket.onopen = () => {
      wait = FIRST_RETRY_MS;
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
  return () => {
    closed = true;
    clearTimeout(timer);
    socket?.close();
  };
}

/** Keeps the cache fresh from the socket. Returns whether the socket is up: pages poll while it is not. */
export function useLiveEvents(tenantId: string | null): boolean {
  const queries = useQueryClient();
  const [live, setLive] = useState(false);
  useEffect(() => {
    if (!tenantId) return;
    const refresh = (resource: string) =>
      queries.invalidateQueries({ queryKey: [tenantId, resource] });
    return openEvents(
      eventsUrl(tenantId),
      (event) => staleResources(event.event).forEach(refresh),
      (up) => {
        setLive(up);
        // What happened while the socket was away is read once it is back.
        if (up) ["adapters", "keys"].forEach(refresh);
      },
    );
  }, [tenantId, queries]);
  return live;
}
