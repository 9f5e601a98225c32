import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "../api/errors";

const RETRIES = 2;

/** A refusal is final; only a server that is away or failing is asked again. */
export function isWorthRetrying(failures: number, error: Error): boolean {
  const refused = error instanceof ApiError && error.status < 500;
  return !refused && failures < RETRIES;
}

export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: { queries: { retry: isWorthRetrying, staleTime: 5_000 } },
  });
}
