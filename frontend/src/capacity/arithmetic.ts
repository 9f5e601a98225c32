import type { ModelSize } from "../api/types";

/** docs/capacity.md derives all of this; `python -m engine.capacity` reckons the same. */

export type KvType = "fp8" | "bf16" | "fp32";

/** Bytes of one head's K or V of one token: of each number, and of their scale. */
const KV_BYTES: Record<KvType, [number, number]> = { fp8: [1, 4], bf16: [2, 0], fp32: [4, 0] };
const WEIGHT_BYTES = 2;

export interface Question {
  /** Bytes of the device. */
  memory: number;
  kv: KvType;
  /** Tokens of a sequence, prompt and answer. */
  context: number;
  slots: number;
  rank: number;
  /** Part of the memory for activations and the allocator, 0 to 1. */
  reserve: number;
  pageSize: number;
  /** FLOP/s in bf16. */
  flops: number;
  /** Bytes/s of memory. */
  bandwidth: number;
}

export interface Answer {
  weightBytes: number;
  kvBytesPerToken: number;
  adapterBytes: number;
  slotBytes: number;
  /** What is left for K and V; below zero: nothing fits. */
  poolBytes: number;
  poolTokens: number;
  /** Sequences of the context's length at once. */
  concurrency: number;
  /** FLOP per byte. */
  ridge: number;
  /** Tokens of a step at which arithmetic begins to bound it. */
  ridgeTokens: number;
  /** Least time of a decode step of all of them; null where nothing fits. */
  stepSeconds: number | null;
  /** Most tokens a second while decoding. */
  tokensPerSecond: number | null;
}

/** (out, in) of a layer's linears, one expert of them: four of attention, then three of the feed-forward block. */
function linears(size: ModelSize): [number, number][] {
  const q = size.q_heads * size.head_dim;
  const kv = size.kv_heads * size.head_dim;
  return [
    [q, size.hidden],
    [kv, size.hidden],
    [kv, size.hidden],
    [size.hidden, q],
    [size.ffn, size.hidden],
    [size.ffn, size.hidden],
    [size.hidden, size.ffn],
  ];
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Weights held; `active`: those that one token is multiplied with. */
export function parameters(size: ModelSize, { active = false } = {}): number {
  const products = linears(size).map(([out, inside]) => out * inside);
  const attention = sum(products.slice(0, 4));
  const expert = sum(products.slice(4));
  const router = size.experts > 1 ? size.hidden * size.experts : 0;
  const layer =
    attention + router + expert * (active ? size.active : size.experts) + 2 * size.hidden;
  const tables = size.tied || active ? 1 : 2;
  return size.layers * layer + tables * size.vocab * size.hidden + size.hidden;
}

/** Of one token, K and V of all layers, scales counted. */
export function kvBytesPerToken(size: ModelSize, kv: KvType): number {
  const [number, scale] = KV_BYTES[kv];
  return 2 * size.layers * size.kv_heads * (size.head_dim * number + scale);
}

/** A LoRA of this rank on every linear, in bf16. */
export function adapterBytes(size: ModelSize, rank: number): number {
  return (
    WEIGHT_BYTES * rank * size.layers * sum(linears(size).map(([out, inside]) => out + inside))
  );
}

export function answer(size: ModelSize, question: Question): Answer {
  const weightBytes = WEIGHT_BYTES * parameters(size);
  const perToken = kvBytesPerToken(size, question.kv);
  const oneAdapter = adapterBytes(size, question.rank);
  const slotBytes = question.slots * oneAdapter;
  const poolBytes = Math.floor(question.memory * (1 - question.reserve)) - weightBytes - slotBytes;
  const pages = Math.max(0, Math.floor(poolBytes / (perToken * question.pageSize)));
  const concurrency = Math.floor(pages / Math.ceil(question.context / question.pageSize));
  const active = parameters(size, { active: true });
  const ridge = question.flops / question.bandwidth;
  const read = weightBytes + concurrency * question.context * perToken;
  const step = Math.max(read / question.bandwidth, (2 * active * concurrency) / question.flops);
  return {
    weightBytes,
    kvBytesPerToken: perToken,
    adapterBytes: oneAdapter,
    slotBytes,
    poolBytes,
    poolTokens: pages * question.pageSize,
    concurrency,
    ridge,
    ridgeTokens: (ridge * (WEIGHT_BYTES / 2) * parameters(size)) / active,
    stepSeconds: concurrency > 0 ? step : null,
    tokensPerSecond: concurrency > 0 ? concurrency / step : null,
  };
}

/** FLOP/s that a step over so many tokens can reach at most: each weight is read once for all of them. */
export function roof(size: ModelSize, question: Question, tokens: number): number {
  const perStep = 2 * parameters(size, { active: true }) * tokens;
  const reading = (WEIGHT_BYTES * parameters(size)) / question.bandwidth;
  return Math.min(question.flops, perStep / reading);
}
