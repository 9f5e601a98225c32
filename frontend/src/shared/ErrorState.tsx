import { Alert, Button, Group, Text } from "@mantine/core";
import { IconAlertCircle } from "@tabler/icons-react";
import { messageOf } from "../api/errors";

interface Props {
  error: unknown;
  what: string;
  onRetry?: () => void;
}

/** What failed and the server's own sentence about it. */
export function ErrorState({ error, what, onRetry }: Props) {
  return (
    <Alert color="red" title={what} icon={<IconAlertCircle aria-hidden />} role="alert">
      <Group justify="space-between" gap="sm">
        <Text size="sm">{messageOf(error)}</Text>
        {onRetry && (
          <Button size="xs" variant="default" onClick={onRetry}>
            Try again
          </Button>
        )}
      </Group>
    </Alert>
  );
}
