import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import type { AlertKind } from "../api/types";
import { useTenant } from "../session/context";
import { useCursorList } from "../shared/useCursorList";

export type DeliveryFilter = "any" | "pending" | "delivered" | "failed";

/** Deliveries go on by themselves, without an event that tells. */
const POLL_MS = 5_000;

/** All of them: a tenant has at most ten. */
export function useWebhooks() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "webhooks"],
    queryFn: () => allRows((query) => bodyOf(api.GET("/api/v1/webhooks", { params: { query } }))),
    refetchInterval: POLL_MS,
  });
}

export function useDeliveries(endpointId: string, state: DeliveryFilter) {
  const { api, tenantId } = useTenant();
  const path = { endpoint_id: endpointId };
  return useCursorList({
    queryKey: [tenantId, "webhooks", endpointId, "deliveries", state],
    fetchPage: (page) =>
      bodyOf(
        api.GET("/api/v1/webhooks/{endpoint_id}/deliveries", {
          params: { path, query: { state, ...page } },
        }),
      ),
    refetchInterval: POLL_MS,
  });
}

function useChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const { tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => queries.invalidateQueries({ queryKey: [tenantId, "webhooks"] }),
  });
}

const at = (id: string) => ({ params: { path: { endpoint_id: id } } });

export function useCreateWebhook() {
  const { api } = useTenant();
  return useChange((body: { url: string; kinds: AlertKind[] }) =>
    bodyOf(api.POST("/api/v1/webhooks", { body })),
  );
}

export interface WebhookChange {
  id: string;
  url?: string;
  kinds?: AlertKind[];
  enabled?: boolean;
}

export function useChangeWebhook() {
  const { api } = useTenant();
  return useChange(({ id, ...body }: WebhookChange) =>
    bodyOf(api.PATCH("/api/v1/webhooks/{endpoint_id}", { ...at(id), body })),
  );
}

export function useRotateWebhook() {
  const { api } = useTenant();
  return useChange((id: string) =>
    bodyOf(api.POST("/api/v1/webhooks/{endpoint_id}/rotate", at(id))),
  );
}

export function useDeleteWebhook() {
  const { api } = useTenant();
  return useChange(async (id: string) => {
    await api.DELETE("/api/v1/webhooks/{endpoint_id}", at(id));
  });
}

export function useTestWebhook() {
  const { api } = useTenant();
  return useChange(async (id: string) => {
    await api.POST("/api/v1/webhooks/{endpoint_id}/test", at(id));
  });
}

export function useResend() {
  const { api } = useTenant();
  return useChange((id: number) =>
    bodyOf(
      api.POST("/api/v1/deliveries/{delivery_id}/resend", {
        params: { path: { delivery_id: id } },
      }),
    ),
  );
}
