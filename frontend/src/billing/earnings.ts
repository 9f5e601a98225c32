import { useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import type { components } from "../api/schema";
import { useTenant } from "../session/context";

type Shapes = components["schemas"];
export type Earning = Shapes["StatementEarning"];
export type Earnings = Shapes["Earnings"];
export type Credit = Shapes["GrantShape"];

/** What others' use of the tenant's adapters has brought in. */
export function useEarnings() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "earnings"],
    queryFn: () => bodyOf(api.GET("/api/v1/earnings")),
  });
}

export function useStatement(id: string) {
  const { api, tenantId } = useTenant();
  const path = { statement_id: id };
  return useQuery({
    queryKey: [tenantId, "statements", id],
    queryFn: () => bodyOf(api.GET("/api/v1/statements/{statement_id}", { params: { path } })),
  });
}

/** Credit that was given, bought or earned, with what is left of it. */
export function useCredits() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "credits"],
    queryFn: () => allRows((query) => bodyOf(api.GET("/api/v1/grants", { params: { query } }))),
  });
}
