import { Group, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { useDocumentName } from "./useDocumentName";

interface Props {
  title: string;
  children: string;
  action?: ReactNode;
}

/** The page's name, one sentence on what it is for, and its main action. Also names the browser tab. */
export function PageHeader({ title, children, action }: Props) {
  useDocumentName(title);
  return (
    <Group justify="space-between" align="flex-start" mb="lg" gap="md">
      <Stack gap={2}>
        <Title order={1}>{title}</Title>
        <Text c="dimmed" size="sm" maw="42rem">
          {children}
        </Text>
      </Stack>
      {action}
    </Group>
  );
}
