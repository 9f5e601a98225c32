import { Anchor, Card, Group, Stack, Text, ThemeIcon, Title } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { Link } from "react-router";
import { ErrorState } from "../shared/ErrorState";
import type { Matter } from "./attention";
import { useAttention } from "./queries";

export function Attention() {
  const { matters, failed } = useAttention();
  if (matters === null) return null;
  return (
    <Stack gap="xs">
      <Title order={2}>Needs attention</Title>
      {failed && (
        <ErrorState
          error={failed.error}
          what="A part of this could not be read"
          onRetry={() => failed.refetch()}
        />
      )}
      {matters.length === 0 && !failed && (
        <Text size="sm" c="dimmed">
          Nothing. Limits and credit near their end, rejected adapters and keys about to expire are
          shown here.
        </Text>
      )}
      {matters.map((matter) => (
        <MatterCard key={matter.text} matter={matter} />
      ))}
    </Stack>
  );
}

function MatterCard({ matter: { text, to, isUrgent } }: { matter: Matter }) {
  return (
    <Card withBorder padding="sm">
      <Group gap="sm" wrap="nowrap">
        <ThemeIcon variant="light" color={isUrgent ? "red" : "yellow"} radius="xl">
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
  );
}
