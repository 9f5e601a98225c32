import { useMutation, useQuery } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import { useTenant } from "../session/context";
import { saveFile } from "../shared/saveFile";

export function useInvoices() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "invoices"],
    queryFn: () => allRows((query) => bodyOf(api.GET("/api/v1/invoices", { params: { query } }))),
  });
}

export function useInvoice(id: string) {
  const { api, tenantId } = useTenant();
  const path = { invoice_id: id };
  return useQuery({
    queryKey: [tenantId, "invoices", id],
    queryFn: () => bodyOf(api.GET("/api/v1/invoices/{invoice_id}", { params: { path } })),
  });
}

export function useInvoicePdf() {
  const { api } = useTenant();
  return useMutation({
    mutationFn: async ({ id, number }: { id: string; number: string }) => {
      const path = { invoice_id: id };
      const call = api.GET("/api/v1/invoices/{invoice_id}/pdf", {
        params: { path },
        parseAs: "blob",
      });
      saveFile(`${number}.pdf`, await bodyOf(call as Promise<{ data?: Blob }>));
    },
  });
}
