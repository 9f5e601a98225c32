import { Card, Group, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useId } from "react";

interface Props {
  title: string;
  text: string;
  action?: ReactNode;
  children?: ReactNode;
}

/** One thing that guards the account: what it is, what to do about it, how it stands. */
export function Section({ title, text, action, children }: Props) {
  const name = useId();
  return (
    <Card withBorder padding="lg" component="section" aria-labelledby={name}>
      <Stack>
        <Group justify="space-between" align="flex-start" gap="md">
          <Stack gap={2}>
            <Title order={2} id={name}>
              {title}
            </Title>
            <Text c="dimmed" size="sm" maw="42rem">
              {text}
            </Text>
          </Stack>
          {action}
        </Group>
        {children}
      </Stack>
    </Card>
  );
}
