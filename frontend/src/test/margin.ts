import type { Margin } from "../api/types";

type Money = Margin["total"];

export function someMoney(fields: Partial<Money> = {}): Money {
  return {
    requests: 12,
    prompt_tokens: 900,
    cached_tokens: 300,
    completion_tokens: 1_100,
    device_seconds: "1.5",
    prefill_seconds: "0.5",
    decode_seconds: "1",
    energy_joules: null,
    revenue: "0.01",
    cost: "0.0002",
    prefill_cost: "0.0001",
    decode_cost: "0.0001",
    energy_cost: null,
    margin: "0.0098",
    margin_percent: "98.0",
    revenue_per_1m: "5",
    cost_per_1m: "0.1",
    cache_savings: "0.00005",
    ...fields,
  };
}

export function aMargin(fields: Partial<Margin> = {}): Margin {
  return {
    from: "2026-03-01T00:00:00Z",
    to: "2026-03-08T00:00:00Z",
    tz: "UTC",
    group_by: "tenant",
    cost_per_hour: "0.4",
    cost_per_kwh: null,
    data: [{ group: "ten_1", label: "Acme", tenant: "Acme", ...someMoney() }],
    total: someMoney(),
    device: {
      up_seconds: "3600",
      busy_seconds: "1.5",
      idle_seconds: "3598.5",
      cost: "0.4",
      idle_cost: "0.3998",
      energy_joules: null,
      energy_cost: null,
      idle_energy_joules: null,
      idle_energy_cost: null,
    },
    ...fields,
  };
}
