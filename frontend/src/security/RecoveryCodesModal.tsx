import { Alert, Button, Code, CopyButton, Group, Modal, Stack } from "@mantine/core";

/** Shown once: a click beside the dialogue must not lose them. */
export function RecoveryCodesModal({ codes, onClose }: { codes: string[]; onClose: () => void }) {
  const text = codes.join("\n");
  return (
    <Modal
      opened={codes.length > 0}
      onClose={onClose}
      title="Your recovery codes"
      closeOnClickOutside={false}
      closeOnEscape={false}
    >
      <Stack>
        <Alert color="yellow">
          Keep these apart from your device: each lets you in once when it is lost. They are not
          shown again.
        </Alert>
        <Code block aria-label="Recovery codes">
          {text}
        </Code>
        <Group justify="space-between">
          <CopyButton value={text}>
            {({ copied, copy }) => <Button onClick={copy}>{copied ? "Copied" : "Copy all"}</Button>}
          </CopyButton>
          <Button variant="default" onClick={onClose}>
            I have kept them
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
