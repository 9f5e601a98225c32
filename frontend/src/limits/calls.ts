import type { Api } from "../api/client";
import { bodyOf } from "../api/client";
import type { LevelLimits, Limits } from "../api/types";
import type { LimitChanges } from "./form";
import type { Whose } from "./queries";

/** `postpaid_limit`, `tenant_weight`, `owed`: of an account only. */
export type LimitsNow = LevelLimits & Partial<Limits>;

interface Calls {
  read: () => Promise<LimitsNow>;
  write: (body: LimitChanges) => Promise<LimitsNow>;
}

/** How the limits of each level are read and set. */
export function limitCalls(api: Api, { level, id }: Pick<Whose, "level" | "id">): Calls {
  switch (level) {
    case "tenant": {
      const params = { path: { tenant_id: id } };
      const path = "/api/v1/operator/tenants/{tenant_id}/limits";
      return {
        read: () => bodyOf(api.GET(path, { params })),
        write: (body) => bodyOf(api.PUT(path, { params, body })),
      };
    }
    case "member": {
      const params = { path: { member_id: id } };
      const path = "/api/v1/members/{member_id}/limits";
      return {
        read: () => bodyOf(api.GET(path, { params })),
        write: (body) => bodyOf(api.PUT(path, { params, body })),
      };
    }
    case "key": {
      const params = { path: { key_id: id } };
      const path = "/api/v1/keys/{key_id}/limits";
      return {
        read: () => bodyOf(api.GET(path, { params })),
        write: (body) => bodyOf(api.PUT(path, { params, body })),
      };
    }
    case "adapter": {
      const params = { path: { adapter_id: id } };
      const path = "/api/v1/adapters/{adapter_id}/limits";
      return {
        read: () => bodyOf(api.GET(path, { params })),
        write: (body) => bodyOf(api.PUT(path, { params, body })),
      };
    }
  }
}
