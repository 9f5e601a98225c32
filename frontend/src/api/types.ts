/** The shapes the console reads. Amounts are exact decimals in strings: format them, never add them as floats. */
export type Role = "owner" | "admin" | "developer" | "billing" | "viewer";
export type VersionState = "uploading" | "checking" | "ready" | "rejected" | "deleted";

export interface Membership {
  tenant: { id: string; slug: string; name: string };
  role: Role;
}

export interface Session {
  user: { id: string; email: string; is_operator: boolean };
  memberships: Membership[];
  door_url: string;
  base_model: { name: string; context_len: number };
}

export interface ApiKey {
  id: string;
  name: string;
  prefix: string;
  last4: string;
  scopes: string[];
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
  created_by: string | null;
}

export interface IssuedKey extends ApiKey {
  key: string;
}

export interface Problem {
  code: string;
  where: string;
  found: string;
  expected: string;
  remedy: string;
}

export interface CheckReport {
  problems: Problem[];
  summary: string;
}

/** `[start, end]`, half-open. */
export type ByteRange = number[];

export interface VersionFile {
  name: string;
  size: number;
  sha256: string;
  received_bytes: number;
  ranges: ByteRange[];
}

export interface Version {
  id: string;
  number: number;
  state: VersionState;
  digest: string | null;
  rank: number | null;
  size_bytes: number;
  target_modules: string[] | null;
  created_at: string;
  ready_at: string | null;
  report: CheckReport | null;
  files: VersionFile[];
}

export interface Split {
  version: number;
  weight: number;
}

export interface Adapter {
  id: string;
  name: string;
  base_model: string;
  created_at: string;
  state: VersionState | "empty";
  alias: { splits: Split[] } | null;
  versions: Version[];
}

export interface UsageNumbers {
  requests: number;
  prompt_tokens: number;
  cached_tokens: number;
  completion_tokens: number;
  device_seconds: string;
  amount: string;
  cost: string;
  amount_per_1m: string | null;
  cost_per_1m: string | null;
}

export interface UsageRow extends UsageNumbers {
  group: string;
  label: string;
}

export interface Usage {
  from: string;
  to: string;
  tz: string;
  data: UsageRow[];
  total: UsageNumbers;
}

export interface UsagePoint {
  at: string;
  group: string;
  label: string;
  requests: number;
  tokens: number;
  amount: string;
  cost: string;
}

export interface Balance {
  spent_this_period: string;
  budget: string | null;
  held: string;
  owed: string;
  credit: string;
}
