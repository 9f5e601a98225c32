import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { bodyOf } from "../api/client";
import { allRows } from "../api/pages";
import type { Role } from "../api/types";
import { useTenant } from "../session/context";

export function useMembers() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "members"],
    queryFn: () => allRows((query) => bodyOf(api.GET("/api/v1/members", { params: { query } }))),
  });
}

export function useInvitations() {
  const { api, tenantId } = useTenant();
  return useQuery({
    queryKey: [tenantId, "invitations"],
    queryFn: () =>
      allRows((query) => bodyOf(api.GET("/api/v1/invitations", { params: { query } }))),
  });
}

function useReread() {
  const { tenantId } = useTenant();
  const queries = useQueryClient();
  return () =>
    Promise.all([
      queries.invalidateQueries({ queryKey: [tenantId, "members"] }),
      queries.invalidateQueries({ queryKey: [tenantId, "invitations"] }),
    ]);
}

export function useInvite() {
  const { api } = useTenant();
  return useMutation({
    mutationFn: (body: { email: string; role: Role }) =>
      bodyOf(api.POST("/api/v1/invitations", { body })),
    onSuccess: useReread(),
  });
}

export function useWithdraw() {
  const { api } = useTenant();
  return useMutation({
    mutationFn: async (id: string) => {
      const path = { invitation_id: id };
      await api.DELETE("/api/v1/invitations/{invitation_id}", { params: { path } });
    },
    onSuccess: useReread(),
  });
}

export function useChangeRole() {
  const { api } = useTenant();
  return useMutation({
    mutationFn: ({ id, role }: { id: string; role: Role }) =>
      bodyOf(
        api.PATCH("/api/v1/members/{member_id}", {
          params: { path: { member_id: id } },
          body: { role },
        }),
      ),
    onSuccess: useReread(),
  });
}

export function useRemoveMember() {
  const { api } = useTenant();
  return useMutation({
    mutationFn: async (id: string) => {
      await api.DELETE("/api/v1/members/{member_id}", { params: { path: { member_id: id } } });
    },
    onSuccess: useReread(),
  });
}
