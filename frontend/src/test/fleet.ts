import type { Fleet } from "../api/types";

interface Sample {
  second?: number;
  boot_id?: string;
  state?: Fleet["replicas"][number]["state"];
  totals?: object;
  load?: object;
}

/** One engine with some work. second: since midnight of 8 March. */
export function aFleet({
  second = 0,
  boot_id = "boot-1",
  state = "serving",
  totals,
  load,
}: Sample = {}): Fleet {
  return {
    at: new Date(Date.UTC(2026, 2, 8) + second * 1000).toISOString(),
    replicas: [
      {
        name: "engine",
        state,
        can_restart: true,
        boot_id,
        base_model: "SmolLM2-135M-Instruct",
        device: "cpu",
        kv: "fp8",
        limits: {
          pool_tokens: 65_536,
          page_size: 16,
          step_tokens: 512,
          max_running: 64,
          max_rank: 64,
          context_len: 8_192,
        },
        load: {
          running: { ten_1: 2 },
          waiting: { ten_1: 1, ten_2: 3 },
          pages: { free: 2_000, cached: 1_500, used: 596 },
          slots: 16,
          slots_in_use: 2,
          adapters: { slot: 4, host: 6, disk: 0 },
          pinned: 1,
          ...load,
        },
        totals: {
          steps: 0,
          step_seconds: 0,
          batch_tokens: 0,
          batch_sequences: 0,
          generated_tokens: 0,
          preemptions: 0,
          ended: { stop: 10 },
          refused: {},
          ...totals,
        },
      },
    ],
  };
}
