import { useMutation } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { useTenant } from "../session/context";
import { saveFile } from "../shared/saveFile";
import { useCursorList } from "../shared/useCursorList";

/** Empty: whatever it is. */
export type AuditFilter = Record<"action" | "target", string>;

/** What is asked for, without what is not. */
function queryOf(filter: AuditFilter): Partial<AuditFilter> {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value));
}

export function useAudit(filter: AuditFilter) {
  const { api, tenantId } = useTenant();
  return useCursorList({
    queryKey: [tenantId, "audit", filter],
    fetchPage: (page) =>
      bodyOf(api.GET("/api/v1/audit", { params: { query: { ...queryOf(filter), ...page } } })),
  });
}

/** The rows of the filter, all of them, as a file. */
export function useAuditExport(filter: AuditFilter) {
  const { api } = useTenant();
  return useMutation({
    mutationFn: async () => {
      const params = { query: queryOf(filter) };
      const call = api.GET("/api/v1/audit/export", { params, parseAs: "blob" });
      saveFile("audit.csv", await bodyOf(call));
    },
  });
}
