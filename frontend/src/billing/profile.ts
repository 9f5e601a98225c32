import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import type { components } from "../api/schema";
import { useTenant } from "../session/context";

type Shapes = components["schemas"];
export type Profile = Shapes["BillingProfile"];
export type ProfileChanges = Shapes["PatchedChangeBillingProfileRequest"];

export function useBillingProfile() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "billing-profile"],
    queryFn: () => bodyOf(api.GET("/api/v1/billing-profile")),
  });
}

export function useChangeBillingProfile() {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: ProfileChanges) => bodyOf(api.PATCH("/api/v1/billing-profile", { body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: [tenantId, "billing-profile"] }),
  });
}
