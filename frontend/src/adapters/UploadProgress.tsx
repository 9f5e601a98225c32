import { Alert, Button, Group, Progress, Stack, Text, Title } from "@mantine/core";
import {
  IconAlertCircle,
  IconCircleCheck,
  IconPlayerPause,
  IconPlayerPlay,
} from "@tabler/icons-react";
import { messageOf } from "../api/errors";
import { formatBytes } from "../shared/numbers";
import { remainingWords } from "./upload/speed";
import { canGoOn } from "./upload/transfer";
import type { Upload } from "./upload/useUpload";

interface Props {
  upload: Upload;
  name: string;
  onClose: () => void;
  onPause: () => void;
  onResume: () => void;
}

export function UploadProgress(props: Props) {
  const { upload } = props;
  if (upload.step === "done") {
    return (
      <Group justify="space-between">
        <Group gap="xs">
          <IconCircleCheck color="var(--mantine-primary-color-filled)" aria-hidden />
          <Text>
            {`Version ${upload.version.number} of ${upload.name} is uploaded. The check runs now; its result shows below.`}
          </Text>
        </Group>
        <Button variant="default" size="xs" onClick={props.onClose}>
          Upload another
        </Button>
      </Group>
    );
  }
  if (upload.step === "failed") return <Failed {...props} error={upload.error} />;
  return <Running {...props} />;
}

function Failed({ error, name, onResume, onClose }: Props & { error: unknown }) {
  return (
    <Alert
      color="red"
      icon={<IconAlertCircle aria-hidden />}
      title={`The upload of ${name} stopped`}
      role="alert"
    >
      <Text size="sm">{messageOf(error)}</Text>
      <Group mt="sm">
        {canGoOn(error) && (
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

function Running({ upload, name, onClose, onPause, onResume }: Props) {
  const isPaused = upload.step === "paused";
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={2}>{isPaused ? `${name} is paused` : `Uploading ${name}`}</Title>
        <Group gap="xs">
          {upload.step === "sending" && (
            <Button
              size="xs"
              variant="default"
              leftSection={<IconPlayerPause size={14} aria-hidden />}
              onClick={onPause}
            >
              Pause
            </Button>
          )}
          {isPaused && (
            <Button
              size="xs"
              leftSection={<IconPlayerPlay size={14} aria-hidden />}
              onClick={onResume}
            >
              Resume
            </Button>
          )}
          <Button size="xs" variant="default" onClick={onClose}>
            Stop
          </Button>
        </Group>
      </Group>
      <Progress
        value={percentOf(upload)}
        animated={!isPaused}
        size="lg"
        aria-label={`Upload of ${name}`}
      />
      <Text size="sm" c="dimmed" className="figures" aria-live="polite">
        {sentence(upload)}
      </Text>
    </Stack>
  );
}

function percentOf(upload: Upload): number {
  if (upload.step === "sending" || upload.step === "paused") {
    return (100 * upload.sent) / Math.max(upload.total, 1);
  }
  return upload.step === "finishing" ? 100 : 0;
}

function sentence(upload: Upload): string {
  switch (upload.step) {
    case "sending": {
      const from = upload.resumed ? "Going on from where the last try stopped: " : "";
      return `${from}${amountOf(upload)}${paceOf(upload)}`;
    }
    case "paused":
      return `${amountOf(upload)} are there. They wait for a day, also when this page is closed.`;
    case "finishing":
      return "Closing the upload…";
    default:
      return "Reading the files…";
  }
}

function amountOf({ sent, total }: { sent: number; total: number }): string {
  return `${formatBytes(sent)} of ${formatBytes(total)}`;
}

function paceOf({ sent, total, speed }: Upload & { step: "sending" }): string {
  if (speed === null) return "";
  return `, ${formatBytes(speed)}/s, ${remainingWords(total - sent, speed)} left`;
}
