import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import type { EvaluationRow, EvaluationStart, NewPromptSet } from "../api/types";
import { useTenant } from "../session/context";
import { useCursorList } from "../shared/useCursorList";

/** The events tell when one begins and ends; between them answers come without. */
const POLL_MS = 3_000;

const of = (adapterId: string) => ({ path: { adapter_id: adapterId } });
const at = (id: string) => ({ params: { path: { evaluation_id: id } } });

export function useAdapter(id: string) {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "adapters", "one", id],
    queryFn: () => bodyOf(api.GET("/api/v1/adapters/{adapter_id}", { params: of(id) })),
  });
}

/** All of them: an adapter has at most twenty. */
export function usePromptSets(adapterId: string) {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "prompt-sets", adapterId],
    queryFn: () =>
      allRows((query) =>
        bodyOf(
          api.GET("/api/v1/adapters/{adapter_id}/prompt-sets", {
            params: { ...of(adapterId), query },
          }),
        ),
      ),
  });
}

export function useEvaluations(adapterId: string) {
  const { api, tenantId } = useTenant();
  return useCursorList({
    queryKey: [tenantId, "evaluations", "list", adapterId],
    fetchPage: (query) =>
      bodyOf(
        api.GET("/api/v1/adapters/{adapter_id}/evaluations", {
          params: { ...of(adapterId), query },
        }),
      ),
    refetchInterval: POLL_MS,
  });
}

export function useEvaluation(id: string) {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "evaluations", "one", id],
    queryFn: () => bodyOf(api.GET("/api/v1/evaluations/{evaluation_id}", at(id))),
    refetchInterval: ({ state }) => (state.data && !isRunning(state.data) ? false : POLL_MS),
  });
}

export function isRunning({ state }: Pick<EvaluationRow, "state">): boolean {
  return state === "running";
}

function useChange<Input, Output>(resource: string, change: (input: Input) => Promise<Output>) {
  const { tenantId } = useTenant();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => queries.invalidateQueries({ queryKey: [tenantId, resource] }),
  });
}

export function useCreatePromptSet(adapterId: string) {
  const { api } = useTenant();
  return useChange("prompt-sets", (body: NewPromptSet) =>
    bodyOf(api.POST("/api/v1/adapters/{adapter_id}/prompt-sets", { params: of(adapterId), body })),
  );
}

export function useDeletePromptSet() {
  const { api } = useTenant();
  return useChange("prompt-sets", async (id: string) => {
    const path = { prompt_set_id: id };
    await api.DELETE("/api/v1/prompt-sets/{prompt_set_id}", { params: { path } });
  });
}

export function useStartEvaluation(adapterId: string) {
  const { api } = useTenant();
  return useChange("evaluations", (body: EvaluationStart) =>
    bodyOf(api.POST("/api/v1/adapters/{adapter_id}/evaluations", { params: of(adapterId), body })),
  );
}

export function useCancelEvaluation() {
  const { api } = useTenant();
  return useChange("evaluations", (id: string) =>
    bodyOf(api.POST("/api/v1/evaluations/{evaluation_id}/cancel", at(id))),
  );
}

export function useDeleteEvaluation() {
  const { api } = useTenant();
  return useChange("evaluations", async (id: string) => {
    await api.DELETE("/api/v1/evaluations/{evaluation_id}", at(id));
  });
}
