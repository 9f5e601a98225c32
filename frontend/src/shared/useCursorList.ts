import { keepPreviousData, type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import type { Page } from "../api/pages";

interface Options<T> {
  queryKey: QueryKey;
  fetchPage: (query: { cursor?: string }) => Promise<Page<T>>;
  /** Milliseconds; false: never by itself. */
  refetchInterval?: number | false;
  enabled?: boolean;
}

/** A list that the server cuts into pages, and what has been read of it so far. */
export function useCursorList<T>({ fetchPage, ...options }: Options<T>) {
  const list = useInfiniteQuery({
    ...options,
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) => fetchPage(pageParam ? { cursor: pageParam } : {}),
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
  });
  return { list, rows: list.data?.pages.flatMap((page) => page.data) };
}

export type CursorList = ReturnType<typeof useCursorList>["list"];
