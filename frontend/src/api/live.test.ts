import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type LiveEvent, openEvents, parseEvent, staleResources } from "./live";

class FakeSocket {
  static opened: FakeSocket[] = [];
  onopen: (() => void) | null = null;
  onclose: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;
  constructor(readonly url: string) {
    FakeSocket.opened.push(this);
  }
  close() {
    this.onclose?.();
  }
}

beforeEach(() => {
  FakeSocket.opened = [];
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", FakeSocket);
});
afterEach(() => vi.useRealTimers());

function open() {
  const events: LiveEvent[] = [];
  const states: boolean[] = [];
  const stop = openEvents(
    "ws://x/ws/events",
    (event) => events.push(event),
    (up) => states.push(up),
  );
  return { events, states, stop };
}

describe("openEvents", () => {
  it("hands events on and survives what is no event", () => {
    const { events } = open();
    const [socket] = FakeSocket.opened;
    socket?.onmessage?.({ data: '{"event":"adapter.state","data":{"state":"ready"}}' });
    socket?.onmessage?.({ data: "not json" });
    expect(events).toEqual([{ event: "adapter.state", data: { state: "ready" } }]);
  });

  it("comes back after a loss, waiting longer each time, and says so", () => {
    const { states } = open();
    FakeSocket.opened[0]?.onopen?.();
    FakeSocket.opened[0]?.onclose?.();
    vi.advanceTimersByTime(499);
    expect(FakeSocket.opened).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(FakeSocket.opened).toHaveLength(2);
    FakeSocket.opened[1]?.onclose?.();
    vi.advanceTimersByTime(999);
    expect(FakeSocket.opened).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(FakeSocket.opened).toHaveLength(3);
    expect(states).toEqual([true, false, false]);
  });

  it("stays closed once it is closed", () => {
    const { stop } = open();
    stop();
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.opened).toHaveLength(1);
  });
});

it("knows what an event makes stale", () => {
  expect(staleResources("adapter.state")).toEqual(["adapters"]);
  expect(staleResources("usage.recorded")).toEqual(["usage", "timeseries", "balance"]);
  expect(staleResources("key.changed")).toEqual(["keys"]);
  expect(staleResources("something.new")).toEqual([]);
});

it("takes only objects with a name for events", () => {
  expect(parseEvent("[]")).toBeNull();
  expect(parseEvent('{"event":1}')).toBeNull();
  expect(parseEvent('{"event":"x"}')).toEqual({ event: "x", data: {} });
});
