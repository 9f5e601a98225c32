import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { useWorkspace } from "../session/context";
import { saveFile } from "../shared/saveFile";

export const GROUPINGS = [
  { value: "tenant", label: "Tenant" },
  { value: "adapter", label: "Adapter" },
  { value: "key", label: "Key" },
  { value: "model", label: "Model" },
  { value: "day", label: "Day" },
  { value: "hour", label: "Hour" },
] as const;
export type Grouping = (typeof GROUPINGS)[number]["value"];

export interface MarginQuery {
  from: string;
  to: string;
  tz: string;
  group_by: Grouping;
  tenant_id?: string;
}

export function useMargin(query: MarginQuery) {
  const { api } = useWorkspace();
  return useQuery({
    queryKey: ["operator", "margin", query],
    queryFn: () => bodyOf(api.GET("/api/v1/operator/margin", { params: { query } })),
    placeholderData: keepPreviousData,
  });
}

/** The rows of the page as a file. */
export function useMarginExport(query: MarginQuery) {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: async () => {
      const call = api.GET("/api/v1/operator/margin/export", {
        params: { query },
        parseAs: "blob",
      });
      saveFile("margin.csv", (await bodyOf(call)) as unknown as Blob);
    },
  });
}
