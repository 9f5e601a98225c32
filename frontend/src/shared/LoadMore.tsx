import { Button, Group, Text } from "@mantine/core";
import { plural } from "./numbers";

interface Props {
  shown: number;
  what: string;
  many?: string;
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
}

/** Under a list that goes on: how much is shown, and a button for more. */
export function LoadMore({ shown, what, many, list }: Props) {
  if (!list.hasNextPage) return null;
  return (
    <Group justify="center" gap="md" p="sm">
      <Text size="sm" c="dimmed">{`${plural(shown, what, many)} shown`}</Text>
      <Button
        variant="default"
        size="xs"
        onClick={() => list.fetchNextPage()}
        loading={list.isFetchingNextPage}
      >
        Show more
      </Button>
    </Group>
  );
}
