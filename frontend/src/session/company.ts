import { useMutation, useQuery } from "@tanstack/react-query";
import { bodyOf, createApi } from "../api/client";

/** Who comes in through their company names it by an address, or by its short name here. */
export function useLeaveForCompany() {
  return useMutation({
    mutationFn: (where: string) => {
      const body = where.includes("@") ? { email: where } : { tenant: where };
      return bodyOf(createApi(null).POST("/api/v1/session/company", { body }));
    },
    onSuccess: ({ url }) => location.assign(url),
  });
}

/** What the company's page sent the browser back with is good once: asked for once, however often this is shown. */
export function useComeBack(code: string | null, state: string | null) {
  return useQuery({
    queryKey: ["company", state],
    queryFn: () =>
      bodyOf(
        createApi(null).POST("/api/v1/session/company/finish", {
          body: { code: code ?? "", state: state ?? "" },
        }),
      ),
    enabled: Boolean(code && state),
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
}
