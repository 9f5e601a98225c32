import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type LiveEvent, openEvents, parseEvent, staleResources } from "./live";

class FakeSocket {
  static OPEN = 1;
  static opened: FakeSocket[] = [];
  readyState = 0;
  sent: string[] = [];
  onopen: (() => void) | null = null;
  onclose: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;
  constructor(readonly url: string) {
    FakeSocket.opened.push(this);
  }
  send(text: string) {
    this.sent.push(text);
  }
  open() {
    this.readyState = FakeSocket.OPEN;
    this.onopen?.();
  }
  close() {
    this.readyState = 3;
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
  const socket = openEvents(
    "ws://x/ws/events",
    (event) => events.push(event),
    (up) => states.push(up),
  );
  return { events, states, socket };
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

  it("says what it watches once it is open, and again after a loss", () => {
    const { socket } = open();
    const [first] = FakeSocket.opened;
    socket.watch(["fleet"]);
    expect(first?.sent).toEqual([]);
    first?.open();
    expect(first?.sent).toEqual(['{"watch":["fleet"]}']);
    first?.close();
    vi.advanceTimersByTime(500);
    const second = FakeSocket.opened[1];
    second?.open();
    expect(second?.sent).toEqual(['{"watch":["fleet"]}']);
    socket.watch([]);
    expect(second?.sent.at(-1)).toBe('{"watch":[]}');
  });

  it("says nothing where nothing is watched", () => {
    open();
    FakeSocket.opened[0]?.open();
    expect(FakeSocket.opened[0]?.sent).toEqual([]);
  });

  it("stays closed once it is closed", () => {
    const { socket } = open();
    socket.close();
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.opened).toHaveLength(1);
  });
});

it("knows what an event makes stale", () => {
  expect(staleResources("adapter.state")).toEqual(["adapters"]);
  expect(staleResources("usage.recorded")).toEqual(["usage", "timeseries", "balance"]);
  expect(staleResources("key.changed")).toEqual(["keys"]);
  expect(staleResources("batch.changed")).toEqual(["batches"]);
  expect(staleResources("evaluation.changed")).toEqual(["evaluations"]);
  expect(staleResources("something.new")).toEqual([]);
});

it("takes only events that it knows", () => {
  expect(parseEvent("[]")).toBeNull();
  expect(parseEvent("null")).toBeNull();
  expect(parseEvent('{"event":1,"data":{}}')).toBeNull();
  expect(parseEvent('{"event":"of.a.newer.server","data":{}}')).toBeNull();
  expect(parseEvent('{"event":"key.changed"}')).toBeNull();
  const known = { event: "key.changed", data: { id: "key_1" } };
  expect(parseEvent(JSON.stringify(known))).toEqual(known);
});
