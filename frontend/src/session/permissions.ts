import type { OwnRole } from "../api/types";

/** What the console offers to a role. The server decides; this only keeps dead buttons off the page. */
export type Action =
  | "adapters:read"
  | "adapters:write"
  | "adapters:pin"
  | "keys"
  | "inference"
  | "usage:read"
  | "billing:read"
  | "billing:write"
  | "webhooks"
  | "members"
  | "limits"
  | "audit:read";

const DEVELOPER: Action[] = ["adapters:read", "adapters:write", "keys", "inference", "usage:read"];

const ADMIN: Action[] = [
  "adapters:pin",
  "billing:read",
  "billing:write",
  "webhooks",
  "members",
  "limits",
  "audit:read",
];

const ALLOWED: Record<OwnRole, Action[]> = {
  owner: [...DEVELOPER, ...ADMIN],
  admin: [...DEVELOPER, ...ADMIN],
  developer: DEVELOPER,
  billing: ["usage:read", "billing:read", "billing:write"],
  viewer: ["adapters:read", "usage:read"],
  operator: ["adapters:read", "adapters:write", "usage:read", "billing:read", "audit:read"],
};

export function roleCan(role: OwnRole, action: Action): boolean {
  return ALLOWED[role].includes(action);
}
