import { Skeleton, Stack } from "@mantine/core";

/** Grey shapes where cards or rows will stand. */
export function LoadingCards({ count = 3, height = 84 }: { count?: number; height?: number }) {
  return (
    <Stack aria-busy="true" aria-label="Loading" role="status">
      {Array.from({ length: count }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: identical shapes that never move
        <Skeleton key={index} height={height} radius="md" />
      ))}
    </Stack>
  );
}
