import { QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError } from "../api/errors";

const RETRIES = 2;

/** A refusal is final; only a server that is away or failing is asked again. */
export function isWorthRetrying(failures: number, error: Error): boolean {
  const refused = error instanceof ApiError && error.status < 500;
  return !refused && failures < RETRIES;
}

/** A session that ended elsewhere sends every page back to the sign-in page. */
export function createQueries(): QueryClient {
  const queries: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        if (error instanceof ApiError && error.status === 401)
          queries.setQueryData(["session"], null);
      },
    }),
    defaultOptions: { queries: { retry: isWorthRetrying, staleTime: 5_000 } },
  });
  return queries;
}
