import { Alert, Button, Code, CopyButton, Group, Stack } from "@mantine/core";
import { IconAlertTriangle, IconCheck, IconCopy } from "@tabler/icons-react";
import type { ReactNode } from "react";

interface Props {
  secret: string;
  /** Why it is to be copied now. */
  warning: string;
  /** What the button to copy it says. */
  copy: string;
  children?: ReactNode;
  onClose: () => void;
}

/** A secret that is not shown again. */
export function ShownOnce({ secret, warning, copy: label, children, onClose }: Props) {
  return (
    <Stack>
      <Alert color="yellow" icon={<IconAlertTriangle aria-hidden />}>
        {warning}
      </Alert>
      <Code block fz="sm" style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>
        {secret}
      </Code>
      {children}
      <Group justify="space-between">
        <CopyButton value={secret}>
          {({ copied, copy }) => (
            <Button
              onClick={copy}
              leftSection={
                copied ? <IconCheck size={16} aria-hidden /> : <IconCopy size={16} aria-hidden />
              }
            >
              {copied ? "Copied" : label}
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
