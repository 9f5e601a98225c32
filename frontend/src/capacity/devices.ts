import type { ModelSize } from "../api/types";

export interface Device {
  id: string;
  label: string;
  /** Bytes. */
  memory: number;
  /** Dense bf16 FLOP/s. */
  flops: number;
  /** Bytes/s of memory. */
  bandwidth: number;
}

/** From the makers' data sheets; the CPU as one with AVX-512 and bf16 was measured. */
export const DEVICES: Device[] = [
  { id: "h200", label: "H200, 141 GB", memory: 141e9, flops: 989e12, bandwidth: 4.8e12 },
  { id: "h100", label: "H100 SXM, 80 GB", memory: 80e9, flops: 989e12, bandwidth: 3.35e12 },
  { id: "a100", label: "A100 SXM, 80 GB", memory: 80e9, flops: 312e12, bandwidth: 2.039e12 },
  { id: "l40s", label: "L40S, 48 GB", memory: 48e9, flops: 362e12, bandwidth: 0.864e12 },
  { id: "cpu", label: "CPU, 2 cores, 8 GB of it", memory: 8e9, flops: 389e9, bandwidth: 35e9 },
];

interface Preset {
  id: string;
  label: string;
  size: ModelSize;
}

const dense = { experts: 1, active: 1 };

/** Besides the models of this platform, some to plan with. */
export const MODELS: Preset[] = [
  {
    id: "llama-3.1-8b",
    label: "Llama 3.1 8B",
    size: {
      layers: 32,
      hidden: 4096,
      ffn: 14336,
      q_heads: 32,
      kv_heads: 8,
      head_dim: 128,
      vocab: 128_256,
      tied: false,
      ...dense,
    },
  },
  {
    id: "llama-3.1-70b",
    label: "Llama 3.1 70B",
    size: {
      layers: 80,
      hidden: 8192,
      ffn: 28672,
      q_heads: 64,
      kv_heads: 8,
      head_dim: 128,
      vocab: 128_256,
      tied: false,
      ...dense,
    },
  },
  {
    id: "qwen3-8b",
    label: "Qwen3 8B",
    size: {
      layers: 36,
      hidden: 4096,
      ffn: 12288,
      q_heads: 32,
      kv_heads: 8,
      head_dim: 128,
      vocab: 151_936,
      tied: false,
      ...dense,
    },
  },
  {
    id: "qwen3-30b-a3b",
    label: "Qwen3 30B A3B",
    size: {
      layers: 48,
      hidden: 2048,
      ffn: 768,
      q_heads: 32,
      kv_heads: 4,
      head_dim: 128,
      vocab: 151_936,
      tied: false,
      experts: 128,
      active: 8,
    },
  },
];
