import { Group, Text } from "@mantine/core";

/** Three sheets over each other: many thin layers on one base. */
export function Mark({ size = 26 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" fill="none" aria-hidden="true">
      <path d="M16 17 3 23.5 16 30l13-6.5Z" fill="var(--mantine-color-veneer-9)" />
      <path d="M16 10 3 16.5 16 23l13-6.5Z" fill="var(--mantine-color-veneer-6)" />
      <path d="M16 3 3 9.5 16 16l13-6.5Z" fill="var(--mantine-color-veneer-2)" />
    </svg>
  );
}

export function Brand({ size = 26 }: { size?: number }) {
  return (
    <Group gap={8} wrap="nowrap" component="span">
      <Mark size={size} />
      <Text component="span" fw={700} fz={size * 0.77} lh={1} lts="-0.02em">
        Veneer
      </Text>
    </Group>
  );
}
