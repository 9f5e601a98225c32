import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { useTenant } from "../session/context";
import { saveFile } from "../shared/saveFile";

export interface AuditFilter {
  action?: string;
  target?: string;
  actor?: string;
}

export function useAudit(filter: AuditFilter) {
  const { api, tenantId } = useTenant();
  return useInfiniteQuery({
    queryKey: [tenantId, "audit", filter],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) => {
      const query = { ...filter, ...(pageParam ? { cursor: pageParam } : {}) };
      return bodyOf(api.GET("/api/v1/audit", { params: { query } }));
    },
    getNextPageParam: (page) => page.next,
  });
}

/** The rows of the filter, all of them, as a file. */
export function useAuditExport(filter: AuditFilter) {
  const { api } = useTenant();
  return useMutation({
    mutationFn: async () => {
      const call = api.GET("/api/v1/audit/export", { params: { query: filter }, parseAs: "blob" });
      saveFile("audit.csv", await bodyOf(call));
    },
  });
}
