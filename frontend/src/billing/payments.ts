import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import type { components } from "../api/schema";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";

type Shapes = components["schemas"];
export type Payment = Shapes["PaymentShape"];
export type NewPayment = Shapes["StartPaymentRequest"];

/** Whether somebody may pay here, and how much at a time; null where not. */
export function usePaymentOptions() {
  const { api, tenantId, membership } = useTenant();
  const options = useQuery({
    queryKey: [tenantId, "payments", "options"],
    queryFn: () => bodyOf(api.GET("/api/v1/payments/options")),
    staleTime: Number.POSITIVE_INFINITY,
    enabled: membership !== null && roleCan(membership.role, "billing:write"),
  });
  return options.data?.available ? options.data : null;
}

export function usePayments() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "payments"],
    queryFn: () => allRows((query) => bodyOf(api.GET("/api/v1/payments", { params: { query } }))),
  });
}

/** Opens a payment and leaves for the page on which it is paid. */
export function useStartPayment() {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: NewPayment) => bodyOf(api.POST("/api/v1/payments", { body })),
    onSuccess: ({ url }) => window.location.assign(url),
    onSettled: () => queries.invalidateQueries({ queryKey: [tenantId, "payments"] }),
  });
}
