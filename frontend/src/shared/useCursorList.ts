import { keepPreviousData, type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import { isLong, PAGE_SIZE, type Page } from "../api/pages";

interface Options<T> {
  queryKey: QueryKey;
  fetchPage: (query: { cursor?: string; limit?: number }) => Promise<Page<T>>;
  /** Milliseconds; false: never by itself. */
  refetchInterval?: number | false;
  enabled?: boolean;
}

/** A list that the server cuts into pages, and what has been read of it so far: a short page first, then long ones. */
export function useCursorList<T>({ fetchPage, refetchInterval = false, ...options }: Options<T>) {
  const list = useInfiniteQuery({
    ...options,
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) => fetchPage(pageParam ? { cursor: pageParam, limit: PAGE_SIZE } : {}),
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: (query) => (isLong(query.state.data) ? false : refetchInterval),
  });
  return { list, rows: list.data?.pages.flatMap((page) => page.data) };
}

export type CursorList = ReturnType<typeof useCursorList>["list"];
