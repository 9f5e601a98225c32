import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { PAGE_SIZE } from "../api/pages";
import { useWorkspace } from "../session/context";

const PEOPLE = ["operator", "people"];

/** The newest whose address has the text in it: a page of them is more than anybody reads. */
export function usePeople(email: string) {
  const { api } = useWorkspace();
  const query = { email, limit: PAGE_SIZE };
  return useQuery({
    queryKey: [...PEOPLE, email],
    queryFn: async () =>
      (await bodyOf(api.GET("/api/v1/operator/people", { params: { query } }))).data,
  });
}

export function useSetActive() {
  const { api } = useWorkspace();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ id, is_active }: { id: string; is_active: boolean }) =>
      bodyOf(
        api.PATCH("/api/v1/operator/people/{user_id}", {
          params: { path: { user_id: id } },
          body: { is_active },
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: PEOPLE }),
  });
}

export function useResetLink() {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: (id: string) =>
      bodyOf(
        api.POST("/api/v1/operator/people/{user_id}/reset-link", {
          params: { path: { user_id: id } },
        }),
      ),
  });
}

export function useForgetFactors() {
  const { api } = useWorkspace();
  return useMutation({
    mutationFn: async (id: string) => {
      await api.POST("/api/v1/operator/people/{user_id}/forget-factors", {
        params: { path: { user_id: id } },
      });
    },
  });
}
