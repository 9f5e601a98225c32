import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type Api, bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import type { Adapter, AliasChoice, Place } from "../api/types";
import { useTenant } from "../session/context";
import { saveFile } from "../shared/saveFile";
import { useCursorList } from "../shared/useCursorList";

const POLL_MS = 3_000;
const PLACES_POLL_MS = 5_000;
const TRAFFIC_POLL_MS = 5_000;

export function readAdapters(api: Api): Promise<Adapter[]> {
  return allRows((query) => bodyOf(api.GET("/api/v1/adapters", { params: { query } })));
}

/** All of them, for choosing among their names. */
export function useAdapters() {
  const { api, tenantId, live } = useTenant();
  return useQuery({
    queryKey: [tenantId, "adapters"],
    queryFn: () => readAdapters(api),
    refetchInterval: live ? false : POLL_MS,
  });
}

export interface AdapterFilter {
  q?: string;
  state?: Adapter["state"];
}

/** Page by page, for looking through them. */
export function useAdapterList(filter: AdapterFilter) {
  const { api, tenantId, live } = useTenant();
  return useCursorList({
    queryKey: [tenantId, "adapters", "list", filter],
    fetchPage: (page) =>
      bodyOf(api.GET("/api/v1/adapters", { params: { query: { ...filter, ...page } } })),
    refetchInterval: live ? false : POLL_MS,
  });
}

export function useSharedAdapters() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "adapters", "shared"],
    queryFn: async () => (await bodyOf(api.GET("/api/v1/adapters/shared"))).data,
  });
}

/** By version id, where each is just now; null while the engine does not answer. */
export function usePlaces() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "residency"],
    queryFn: async () => {
      const { is_known, data } = await bodyOf(api.GET("/api/v1/adapters/residency"));
      const places = data.map(({ version_id, place }) => [version_id, place] as const);
      return is_known ? new Map<string, Place>(places) : null;
    },
    refetchInterval: PLACES_POLL_MS,
  });
}

export function useTraffic(adapter: Adapter, minutes: number) {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "traffic", adapter.id, minutes],
    queryFn: () =>
      bodyOf(
        api.GET("/api/v1/adapters/{adapter_id}/traffic", {
          params: { path: { adapter_id: adapter.id }, query: { minutes } },
        }),
      ),
    refetchInterval: TRAFFIC_POLL_MS,
  });
}

function useChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const { tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => queries.invalidateQueries({ queryKey: [tenantId, "adapters"] }),
  });
}

const at = (id: string) => ({ params: { path: { adapter_id: id } } });

export function useSetAlias(adapter: Adapter) {
  const { api } = useTenant();
  return useChange((body: AliasChoice) =>
    bodyOf(api.PUT("/api/v1/adapters/{adapter_id}/alias", { ...at(adapter.id), body })),
  );
}

export function useRollBack(adapter: Adapter) {
  const { api } = useTenant();
  return useChange(() =>
    bodyOf(api.POST("/api/v1/adapters/{adapter_id}/rollback", at(adapter.id))),
  );
}

export function useSetPin(adapter: Adapter) {
  const { api } = useTenant();
  return useChange((pinned: boolean) =>
    bodyOf(api.PUT("/api/v1/adapters/{adapter_id}/pin", { ...at(adapter.id), body: { pinned } })),
  );
}

/** force: also where it is shared or pinned. */
export function useDeleteAdapter(adapter: Adapter) {
  const { api } = useTenant();
  return useChange(async (force: boolean) => {
    const path = { adapter_id: adapter.id };
    await api.DELETE("/api/v1/adapters/{adapter_id}", { params: { path, query: { force } } });
  });
}

export function useDeleteVersion() {
  const { api } = useTenant();
  return useChange(async (id: string) => {
    await api.DELETE("/api/v1/versions/{version_id}", { params: { path: { version_id: id } } });
  });
}

export interface ImportRequest {
  name: string;
  base_model: string;
  source: string | string[];
}

export function useImport() {
  const { api } = useTenant();
  return useChange((body: ImportRequest) => bodyOf(api.POST("/api/v1/adapters/import", { body })));
}

export function useDownload() {
  const { api } = useTenant();
  return useMutation({
    mutationFn: async ({ versionId, name }: { versionId: string; name: string }) => {
      const call = api.GET("/api/v1/versions/{version_id}/files/{name}", {
        params: { path: { version_id: versionId, name } },
        parseAs: "blob",
      });
      saveFile(name, await bodyOf(call as Promise<{ data?: Blob }>));
    },
  });
}

const CONFIG = "adapter_config.json";

/** What PEFT wrote beside the weights. It never changes. */
export function useConfig(versionId: string | null) {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "config", versionId],
    enabled: versionId !== null,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const call = api.GET("/api/v1/versions/{version_id}/files/{name}", {
        params: { path: { version_id: versionId ?? "", name: CONFIG } },
        parseAs: "text",
      });
      const text = await bodyOf(call as Promise<{ data?: string }>);
      return JSON.parse(text) as Record<string, unknown>;
    },
  });
}

export function useGrants(adapter: Adapter) {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "adapters", "grants", adapter.id],
    queryFn: async () =>
      (await bodyOf(api.GET("/api/v1/adapters/{adapter_id}/grants", at(adapter.id)))).data,
  });
}

export function useShare(adapter: Adapter) {
  const { api } = useTenant();
  return useChange((tenant: string) =>
    bodyOf(
      api.POST("/api/v1/adapters/{adapter_id}/grants", { ...at(adapter.id), body: { tenant } }),
    ),
  );
}

export function useRevokeGrant(adapter: Adapter) {
  const { api } = useTenant();
  return useChange(async (grantId: string) => {
    const path = { adapter_id: adapter.id, grant_id: grantId };
    await api.DELETE("/api/v1/adapters/{adapter_id}/grants/{grant_id}", { params: { path } });
  });
}

export function useGiveBack() {
  const { api } = useTenant();
  return useChange(async (adapterId: string) => {
    await api.DELETE("/api/v1/adapters/shared/{adapter_id}", at(adapterId));
  });
}
