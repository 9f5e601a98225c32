import { Alert, Button, Code, CopyButton, Group, Stack, Text } from "@mantine/core";
import { IconAlertTriangle, IconCheck, IconCopy } from "@tabler/icons-react";

/** A signing secret, this once. */
export function SecretView({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <Stack>
      <Alert color="yellow" icon={<IconAlertTriangle aria-hidden />}>
        Copy it now. It is not shown again.
      </Alert>
      <Code block fz="sm" style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>
        {secret}
      </Code>
      <Text size="sm" c="dimmed">
        Your program checks the header webhook-signature with it, as libraries for Standard Webhooks
        do.
      </Text>
      <Group justify="space-between">
        <CopyButton value={secret}>
          {({ copied, copy }) => (
            <Button
              onClick={copy}
              leftSection={
                copied ? <IconCheck size={16} aria-hidden /> : <IconCopy size={16} aria-hidden />
              }
            >
              {copied ? "Copied" : "Copy the secret"}
            </Button>
          )}
        </CopyButton>
        <Button variant="default" onClick={onClose}>
          I have stored it
        </Button>
      </Group>
    </Stack>
  );
}
