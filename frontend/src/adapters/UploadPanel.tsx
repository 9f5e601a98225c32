import { Alert, Card, Group, Stack, Text } from "@mantine/core";
import { Dropzone } from "@mantine/dropzone";
import { IconAlertCircle, IconFolderUp } from "@tabler/icons-react";
import { useState } from "react";
import { UploadForm } from "./UploadForm";
import { UploadProgress } from "./UploadProgress";
import { type AdapterFolder, readFolder } from "./upload/folder";
import { type UploadRequest, useUpload } from "./upload/useUpload";

/** Drop a folder, name the adapter, watch it go up. */
export function UploadPanel() {
  const [folder, setFolder] = useState<AdapterFolder | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [request, setRequest] = useState<UploadRequest | null>(null);
  const { upload, start, reset } = useUpload();

  const receive = (files: File[]) => {
    const read = readFolder(files);
    setProblem("problem" in read ? read.problem : null);
    setFolder("problem" in read ? null : read);
  };
  const close = () => {
    reset();
    setFolder(null);
    setRequest(null);
  };
  const send = (next: UploadRequest) => {
    setRequest(next);
    start(next);
  };

  if (request && upload.step !== "idle") {
    return (
      <Card withBorder>
        <UploadProgress
          upload={upload}
          name={request.name}
          onClose={close}
          onResume={() => start(request)}
        />
      </Card>
    );
  }
  if (folder) {
    return (
      <Card withBorder>
        <UploadForm folder={folder} onCancel={close} onSubmit={send} />
      </Card>
    );
  }
  return (
    <Stack gap="sm">
      <FolderDropzone onFiles={receive} />
      {problem && (
        <Alert color="red" icon={<IconAlertCircle aria-hidden />} role="alert">
          {problem}
        </Alert>
      )}
    </Stack>
  );
}

function FolderDropzone({ onFiles }: { onFiles: (files: File[]) => void }) {
  return (
    <Dropzone
      onDrop={onFiles}
      inputProps={{ webkitdirectory: "", "aria-label": "PEFT folder" }}
      aria-label="Upload an adapter: drop a PEFT folder here, or press Enter to choose one"
      p="lg"
    >
      <Group wrap="nowrap" justify="center" gap="md" style={{ pointerEvents: "none" }}>
        <IconFolderUp
          size={36}
          stroke={1.4}
          color="var(--mantine-primary-color-filled)"
          style={{ flexShrink: 0 }}
          aria-hidden
        />
        <div>
          <Text fw={600}>Drop a PEFT folder here, or click to choose one</Text>
          <Text size="sm" c="dimmed">
            It holds adapter_config.json and adapter_model.safetensors. It is checked before it
            serves.
          </Text>
        </div>
      </Group>
    </Dropzone>
  );
}
