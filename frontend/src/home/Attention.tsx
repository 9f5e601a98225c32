import { Alert, Anchor, Stack, Text, Title } from "@mantine/core";
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
        <Alert
          key={text}
          color="yellow"
          icon={<IconAlertTriangle aria-hidden />}
          title={text}
          variant="light"
        >
          <Anchor component={Link} to={to} size="sm">
            Look at it
          </Anchor>
        </Alert>
      ))}
    </Stack>
  );
}
