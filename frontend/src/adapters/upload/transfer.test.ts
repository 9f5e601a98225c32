// @vitest-environment node
import { expect, it } from "vitest";
import { ApiError } from "../../api/errors";
import type { Version } from "../../api/types";
import type { SendPart } from "./sendPart";
import { transferFiles } from "./transfer";

/** A server that keeps what arrives, and can break a chosen part. */
function fakeServer(size: number) {
  const stored = new Uint8Array(size);
  const ranges: number[][] = [];
  const offsets: number[] = [];
  const readVersion = async () =>
    ({
      files: [{ name: "w.safetensors", size, sha256: "", received_bytes: 0, ranges }],
    }) as unknown as Version;
  const store: SendPart = async ({ offset, body, onProgress }) => {
    offsets.push(offset);
    stored.set(new Uint8Array(await body.arrayBuffer()), offset);
    ranges.push([offset, offset + body.size]);
    onProgress(body.size);
  };
  return { stored, ranges, offsets, readVersion, store };
}

const PART_BYTES = 64;
const SIZE = 2 * PART_BYTES + 5;
const bytes = new Uint8Array(SIZE).map((_, index) => (index * 31) % 251);

function request(server: ReturnType<typeof fakeServer>, send: SendPart, parallel = 1) {
  const seen: number[] = [];
  const controller = new AbortController();
  const run = () =>
    transferFiles({
      versionId: "adv_1",
      tenantId: "ten_1",
      files: [new File([bytes], "w.safetensors")],
      readVersion: server.readVersion,
      send,
      onProgress: (sent) => seen.push(sent),
      signal: controller.signal,
      partBytes: PART_BYTES,
      parallel,
      wait: async () => undefined,
    });
  return { run, seen, controller };
}

it("sends every byte in order and reports progress to the end", async () => {
  const server = fakeServer(SIZE);
  const { run, seen } = request(server, server.store);
  await run();
  expect(server.stored).toEqual(bytes);
  expect(server.offsets).toEqual([0, PART_BYTES, 2 * PART_BYTES]);
  expect(seen.at(-1)).toBe(SIZE);
});

it("asks what is held after a broken connection and sends only the rest", async () => {
  const server = fakeServer(SIZE);
  let broken = false;
  const { run } = request(server, async (part) => {
    if (part.offset > 0 && !broken) {
      broken = true;
      throw new TypeError("connection lost");
    }
    return server.store(part);
  });
  await run();
  expect(server.offsets).toEqual([0, PART_BYTES, 2 * PART_BYTES]);
  expect(server.stored).toEqual(bytes);
});

it("starts from what an earlier try left", async () => {
  const server = fakeServer(SIZE);
  server.stored.set(bytes.slice(0, PART_BYTES));
  server.ranges.push([0, PART_BYTES]);
  const { run, seen } = request(server, server.store);
  await run();
  expect(server.offsets).toEqual([PART_BYTES, 2 * PART_BYTES]);
  expect(seen[0]).toBe(PART_BYTES);
});

it("gives up at once on a refusal", async () => {
  const server = fakeServer(SIZE);
  let calls = 0;
  const { run } = request(server, async () => {
    calls += 1;
    throw new ApiError(409, "other bytes are stored there");
  });
  await expect(run()).rejects.toThrow("other bytes are stored there");
  expect(calls).toBe(1);
});

it("stops between parts when the user stops it", async () => {
  const server = fakeServer(SIZE);
  const { run, controller } = request(server, async (part) => {
    await server.store(part);
    controller.abort();
  });
  await expect(run()).rejects.toThrow();
  expect(server.offsets).toEqual([0]);
});

it("sends several parts at once, whichever is there first", async () => {
  const server = fakeServer(SIZE);
  let running = 0;
  let most = 0;
  const slow: SendPart = async (part) => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, part.offset === 0 ? 20 : 1));
    running -= 1;
    return server.store(part);
  };
  const { run, seen } = request(server, slow, 3);
  await run();
  expect(most).toBe(3);
  expect(server.offsets.at(-1)).toBe(0);
  expect(server.stored).toEqual(bytes);
  expect(seen.at(-1)).toBe(SIZE);
  expect(seen.toSorted((a, b) => a - b)).toEqual(seen);
});

it("stops the other parts when one is refused", async () => {
  const server = fakeServer(SIZE);
  let stopped = 0;
  const { run } = request(
    server,
    (part) => {
      if (part.offset === 0) return Promise.reject(new ApiError(409, "other bytes are there"));
      return new Promise((_, reject) => {
        part.signal.addEventListener("abort", () => {
          stopped += 1;
          reject(part.signal.reason);
        });
      });
    },
    3,
  );
  await expect(run()).rejects.toThrow("other bytes are there");
  expect(stopped).toBe(2);
});
