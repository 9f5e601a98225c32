import type {
  Adapter,
  ApiKey,
  Generation,
  Invoice,
  Session,
  Usage,
  UsageNumbers,
  Version,
} from "../api/types";

export function aVersion(fields: Partial<Version> = {}): Version {
  return {
    id: "adv_1",
    number: 1,
    state: "ready",
    digest: "d1",
    rank: 8,
    size_bytes: 937_056,
    target_modules: ["q_proj", "v_proj"],
    created_at: "2026-03-01T10:00:00Z",
    ready_at: "2026-03-01T10:00:05Z",
    report: null,
    source: null,
    files: [],
    ...fields,
  };
}

export function anAdapter(fields: Partial<Adapter> = {}): Adapter {
  return {
    id: "adp_1",
    name: "pirate",
    base_model: "SmolLM2-135M-Instruct",
    created_at: "2026-03-01T10:00:00Z",
    state: "ready",
    alias: { splits: [{ version: 1, weight: 100 }], follows_newest: true, rolls_back_to: null },
    pinned: false,
    versions: [aVersion()],
    ...fields,
  };
}

/** Of February, overdue, a part of it paid. */
export function anInvoice(fields: Partial<Invoice> = {}): Invoice {
  return {
    id: "ivc_1",
    number: "INV-000007",
    statement_id: "stm_1",
    period_start: "2026-02-01T00:00:00Z",
    period_end: "2026-03-01T00:00:00Z",
    time_zone: "UTC",
    currency: "USD",
    subtotal: "12.34",
    tax_name: "VAT",
    tax_rate: "19",
    tax: "2.34",
    total: "14.68",
    open: "4.68",
    state: "overdue",
    due_on: "2026-03-15",
    created_at: "2026-03-01T00:00:05Z",
    ...fields,
  };
}

export function aKey(fields: Partial<ApiKey> = {}): ApiKey {
  return {
    id: "key_1",
    name: "ci",
    prefix: "abc",
    last4: "1234",
    scopes: ["inference"],
    created_at: "2026-03-01T00:00:00Z",
    expires_at: null,
    revoked_at: null,
    last_used_at: null,
    created_by: null,
    allowed_models: null,
    allowed_networks: null,
    rotated_at: null,
    old_until: null,
    ...fields,
  };
}

export function aSession(fields: Partial<Session> = {}): Session {
  return {
    user: { id: "usr_1", email: "ann@acme.test", is_operator: false },
    memberships: [
      { tenant: { id: "ten_1", slug: "acme", name: "Acme" }, role: "owner", barred: null },
    ],
    on_behalf: null,
    through_company: false,
    door_url: "http://127.0.0.1:8001",
    currency: "USD",
    base_model: { name: "SmolLM2-135M-Instruct", context_len: 8192 },
    ...fields,
  };
}

export function someNumbers(fields: Partial<UsageNumbers> = {}): UsageNumbers {
  return {
    requests: 12,
    prompt_tokens: 900,
    cached_tokens: 300,
    completion_tokens: 1_100,
    device_seconds: "7.250000000",
    amount: "0.000912345678",
    cost: "0.000805555556",
    amount_per_1m: "0.456172839000",
    cost_per_1m: "0.402777778000",
    ...fields,
  };
}

export function aUsage(fields: Partial<Usage> = {}): Usage {
  return {
    from: "2026-03-01T00:00:00Z",
    to: "2026-03-08T00:00:00Z",
    tz: "UTC",
    currency: "USD",
    data: [{ group: "adp_1", label: "pirate", ...someNumbers() }],
    total: someNumbers(),
    ...fields,
  };
}

export function aGeneration(fields: Partial<Generation> = {}): Generation {
  return {
    id: "req_1",
    model: "pirate@2",
    base_model: "SmolLM2-135M-Instruct",
    adapter_id: "adp_1",
    key_id: "key_1",
    key: "ci",
    member: "ann@acme.test",
    prompt_tokens: 90,
    cached_tokens: 30,
    completion_tokens: 40,
    amount: "0.000912345678",
    cost: "0.0008",
    device_seconds: "0.7",
    outcome: "completed",
    finish_reason: "stop",
    started_at: "2026-03-02T10:00:00Z",
    finished_at: "2026-03-02T10:00:02Z",
    seconds: 2.004,
    first_token_ms: 312.4,
    is_batch: false,
    ...fields,
  };
}
