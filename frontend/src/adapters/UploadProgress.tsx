import { Alert, Button, Group, Progress, Stack, Text, Title } from "@mantine/core";
import { IconAlertCircle, IconCircleCheck } from "@tabler/icons-react";
import { messageOf } from "../api/errors";
import { formatBytes } from "../shared/numbers";
import { isTransient } from "./upload/transfer";
import type { Upload } from "./upload/useUpload";

interface Props {
  upload: Upload;
  name: string;
  onClose: () => void;
  onResume: () => void;
}

export function UploadProgress({ upload, name, onClose, onResume }: Props) {
  if (upload.step === "done") {
    return (
      <Group justify="space-between">
        <Group gap="xs">
          <IconCircleCheck color="var(--mantine-primary-color-filled)" aria-hidden />
          <Text>
            {`Version ${upload.version.number} of ${upload.name} is uploaded. The check runs now; its result shows below.`}
          </Text>
        </Group>
        <Button variant="default" size="xs" onClick={onClose}>
          Upload another
        </Button>
      </Group>
    );
  }
  if (upload.step === "failed") {
    return (
      <Alert
        color="red"
        icon={<IconAlertCircle aria-hidden />}
        title={`The upload of ${name} stopped`}
        role="alert"
      >
        <Text size="sm">{messageOf(upload.error)}</Text>
        <Group mt="sm">
          {isTransient(upload.error) && (
            <Button size="xs" onClick={onResume}>
              Resume
            </Button>
          )}
          <Button size="xs" variant="default" onClick={onClose}>
            Dismiss
          </Button>
        </Group>
      </Alert>
    );
  }
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={2}>{`Uploading ${name}`}</Title>
        <Button size="xs" variant="default" onClick={onClose}>
          Stop
        </Button>
      </Group>
      <Progress value={percentOf(upload)} animated size="lg" aria-label={`Upload of ${name}`} />
      <Text size="sm" c="dimmed" className="figures" aria-live="polite">
        {sentence(upload)}
      </Text>
    </Stack>
  );
}

function percentOf(upload: Upload): number {
  if (upload.step === "sending") return (100 * upload.sent) / Math.max(upload.total, 1);
  return upload.step === "finishing" ? 100 : 0;
}

function sentence(upload: Upload): string {
  if (upload.step === "sending") {
    const from = upload.resumed ? "Going on from where the last try stopped: " : "";
    return `${from}${formatBytes(upload.sent)} of ${formatBytes(upload.total)}`;
  }
  return upload.step === "finishing" ? "Closing the upload…" : "Reading the files…";
}
