import type { Role } from "../api/types";

/** What the console offers to a role. The server decides; this only keeps dead buttons off the page. */
export type Action =
  | "adapters:read"
  | "adapters:write"
  | "adapters:pin"
  | "keys"
  | "inference"
  | "usage:read"
  | "billing:read"
  | "members"
  | "audit:read";

const DEVELOPER: Action[] = ["adapters:read", "adapters:write", "keys", "inference", "usage:read"];

const ALLOWED: Record<Role, Action[]> = {
  owner: [...DEVELOPER, "adapters:pin", "billing:read", "members", "audit:read"],
  admin: [...DEVELOPER, "adapters:pin", "billing:read", "members", "audit:read"],
  developer: DEVELOPER,
  billing: ["usage:read", "billing:read"],
  viewer: ["adapters:read", "usage:read"],
};

export function roleCan(role: Role, action: Action): boolean {
  return ALLOWED[role].includes(action);
}
