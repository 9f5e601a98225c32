import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import type { components } from "../api/schema";
import { useWorkspace } from "../session/context";

type Shapes = components["schemas"];
export type ProfileChanges = Shapes["PatchedChangeTenantBillingRequest"];
export type NewAgreement = Shapes["SetAgreementRequest"];
export type NewEntry = Shapes["BookInvoiceEntryRequest"];

function keyOf(tenantId: string): string[] {
  return ["operator", "billing", tenantId];
}

function useBooking<Input, Output>(tenantId: string, send: (input: Input) => Promise<Output>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: send,
    onSuccess: () => queries.invalidateQueries({ queryKey: keyOf(tenantId) }),
  });
}

export function useTenantInvoices(tenantId: string) {
  const { api } = useWorkspace();
  const path = { tenant_id: tenantId };
  return useQuery({
    queryKey: [...keyOf(tenantId), "invoices"],
    queryFn: () =>
      allRows((query) =>
        bodyOf(
          api.GET("/api/v1/operator/tenants/{tenant_id}/invoices", { params: { path, query } }),
        ),
      ),
  });
}

/** The newest first: what was, is and will be agreed. */
export function useAgreements(tenantId: string) {
  const { api } = useWorkspace();
  const path = { tenant_id: tenantId };
  return useQuery({
    queryKey: [...keyOf(tenantId), "agreements"],
    queryFn: () =>
      allRows((query) =>
        bodyOf(
          api.GET("/api/v1/operator/tenants/{tenant_id}/agreements", { params: { path, query } }),
        ),
      ),
  });
}

export function useProfile(tenantId: string) {
  const { api } = useWorkspace();
  const path = { tenant_id: tenantId };
  return useQuery({
    queryKey: [...keyOf(tenantId), "profile"],
    queryFn: () =>
      bodyOf(api.GET("/api/v1/operator/tenants/{tenant_id}/billing-profile", { params: { path } })),
  });
}

export function useAgree(tenantId: string) {
  const { api } = useWorkspace();
  const path = { tenant_id: tenantId };
  return useBooking(tenantId, (body: NewAgreement) =>
    bodyOf(api.POST("/api/v1/operator/tenants/{tenant_id}/agreements", { params: { path }, body })),
  );
}

export function useChangeProfile(tenantId: string) {
  const { api } = useWorkspace();
  const path = { tenant_id: tenantId };
  return useBooking(tenantId, (body: ProfileChanges) =>
    bodyOf(
      api.PATCH("/api/v1/operator/tenants/{tenant_id}/billing-profile", { params: { path }, body }),
    ),
  );
}

export function useBookEntry(tenantId: string, invoiceId: string) {
  const { api } = useWorkspace();
  const path = { tenant_id: tenantId, invoice_id: invoiceId };
  return useBooking(tenantId, (body: NewEntry) =>
    bodyOf(
      api.POST("/api/v1/operator/tenants/{tenant_id}/invoices/{invoice_id}/entries", {
        params: { path },
        body,
      }),
    ),
  );
}
