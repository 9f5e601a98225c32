import { Alert, Button, Code, CopyButton, Group, Stack } from "@mantine/core";
import { IconAlertTriangle, IconCheck, IconCopy } from "@tabler/icons-react";
import type { IssuedKey } from "../api/types";

export function IssuedKeyView({ issued, onClose }: { issued: IssuedKey; onClose: () => void }) {
  return (
    <Stack>
      <Alert color="yellow" icon={<IconAlertTriangle aria-hidden />}>
        Copy it now. Veneer keeps only a hash and can never show it again.
      </Alert>
      <Code block fz="sm" style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>
        {issued.key}
      </Code>
      <Group justify="space-between">
        <CopyButton value={issued.key}>
          {({ copied, copy }) => (
            <Button
              onClick={copy}
              leftSection={
                copied ? <IconCheck size={16} aria-hidden /> : <IconCopy size={16} aria-hidden />
              }
            >
              {copied ? "Copied" : "Copy the key"}
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
