import { Anchor, Card, Group, Stack, Text, ThemeIcon, Title } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { Link } from "react-router";
import { useAttention } from "./queries";

export function Attention() {
  const matters = useAttention();
  if (matters === null) return null;
  return (
    <Stack gap="xs">
      <Title order={2}>Needs attention</Title>
      {matters.length === 0 && (
        <Text size="sm" c="dimmed">
          Nothing. Budgets near their end, rejected adapters and keys about to expire are shown
          here.
        </Text>
      )}
      {matters.map(({ text, to }) => (
        <Card key={text} withBorder padding="sm">
          <Group gap="sm" wrap="nowrap">
            <ThemeIcon variant="light" color="yellow" radius="xl">
              <IconAlertTriangle size={16} aria-hidden />
            </ThemeIcon>
            <Text size="sm" flex={1}>
              {text}
            </Text>
            <Anchor component={Link} to={to} size="sm">
              Look at it
            </Anchor>
          </Group>
        </Card>
      ))}
    </Stack>
  );
}
