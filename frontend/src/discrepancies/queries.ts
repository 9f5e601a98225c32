import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import { useWorkspace } from "../session/context";

const DISCREPANCIES = ["operator", "discrepancies"];

export function useDiscrepancies() {
  const { api } = useWorkspace();
  return useQuery({
    queryKey: DISCREPANCIES,
    queryFn: () =>
      allRows((query) => bodyOf(api.GET("/api/v1/operator/discrepancies", { params: { query } }))),
    refetchInterval: 30_000,
  });
}

export function useResolve(id: number) {
  const { api } = useWorkspace();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (note: string) =>
      bodyOf(
        api.POST("/api/v1/operator/discrepancies/{discrepancy_id}/resolve", {
          params: { path: { discrepancy_id: id } },
          body: { note },
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: DISCREPANCIES }),
  });
}
