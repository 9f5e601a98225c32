import type { ApiKey } from "../api/types";

export type KeyState = "active" | "expired" | "revoked";

/** Both instants are exclusive: at `expires_at` the key is refused already. */
export function keyState(key: ApiKey, now = Date.now()): KeyState {
  if (key.revoked_at) return "revoked";
  return key.expires_at && new Date(key.expires_at).getTime() <= now ? "expired" : "active";
}

/** Whether the text that a rotation replaced still works. */
export function isInGrace(key: ApiKey, now = Date.now()): boolean {
  return key.old_until !== null && new Date(key.old_until).getTime() > now;
}
