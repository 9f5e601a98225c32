// @vitest-environment node
import { describe, expect, it } from "vitest";
import { sseData } from "./sse";

function streamOf(pieces: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
}

async function read(pieces: Uint8Array[]): Promise<string[]> {
  const found: string[] = [];
  for await (const data of sseData(streamOf(pieces))) found.push(data);
  return found;
}

const TEXT =
  'data: {"a":"ä€😀"}\n\n: ping\n\ndata: one\r\ndata: two\r\n\r\nevent: x\ndata:bare\n\n';
const EVENTS = ['{"a":"ä€😀"}', "one\ntwo", "bare"];

describe("sseData", () => {
  it("gives the same events wherever the bytes are cut", async () => {
    const bytes = new TextEncoder().encode(TEXT);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      expect(await read([bytes.slice(0, cut), bytes.slice(cut)])).toEqual(EVENTS);
    }
    expect(await read([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(EVENTS);
  });

  it("drops an event that was cut off by the end", async () => {
    expect(await read([new TextEncoder().encode("data: whole\n\ndata: half")])).toEqual(["whole"]);
  });

  it("lets go of the stream when the reader stops early", async () => {
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new TextEncoder().encode("data: x\n\n")),
      cancel: () => {
        cancelled = true;
      },
    });
    for await (const data of sseData(endless)) {
      expect(data).toBe("x");
      break;
    }
    expect(cancelled).toBe(true);
  });
});
