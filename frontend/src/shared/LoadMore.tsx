import { Button, Group, Text } from "@mantine/core";
import { useIntersection } from "@mantine/hooks";
import { useEffect } from "react";
import { plural } from "./numbers";

interface Props {
  shown: number;
  what: string;
  many?: string;
  list: {
    data: { pages: unknown[] } | undefined;
    hasNextPage: boolean;
    isFetchingNextPage: boolean;
    isFetchNextPageError: boolean;
    fetchNextPage: () => unknown;
  };
  /** Once more has been asked for, the rest comes by scrolling. For a list that nothing follows. */
  onward?: boolean;
}

/** Under a list that goes on: how much is shown, and a button for more. */
export function LoadMore({ shown, what, many, list, onward = false }: Props) {
  const { ref, entry } = useIntersection();
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list;
  const isSeen = onward && entry?.isIntersecting === true && (list.data?.pages.length ?? 0) > 1;
  const isDue = isSeen && hasNextPage && !isFetchingNextPage && !isFetchNextPageError;
  useEffect(() => {
    if (isDue) fetchNextPage();
  }, [isDue, fetchNextPage]);
  if (!hasNextPage) return null;
  return (
    <Group ref={ref} justify="center" gap="md" p="sm">
      <Text size="sm" c="dimmed">{`${plural(shown, what, many)} shown`}</Text>
      <Button
        variant="default"
        size="xs"
        onClick={() => fetchNextPage()}
        loading={isFetchingNextPage}
      >
        Show more
      </Button>
    </Group>
  );
}
