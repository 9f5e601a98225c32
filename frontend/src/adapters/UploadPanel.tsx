import "@mantine/dropzone/styles.css";
import { Alert, Card, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { Dropzone } from "@mantine/dropzone";
import { IconAlertCircle, IconFolderUp } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { ImportForm } from "./ImportForm";
import { UploadForm } from "./UploadForm";
import { UploadProgress } from "./UploadProgress";
import { type AdapterFolder, readFolder } from "./upload/folder";
import { type Upload, type UploadRequest, useUpload } from "./upload/useUpload";

const WAYS = [
  { value: "folder", label: "From this computer" },
  { value: "address", label: "From a URL or hub" },
];

interface Props {
  /** The version that is being sent from here; null: none is. */
  onSending: (versionId: string | null) => void;
}

/** Drop a folder, name the adapter, watch it go up. Or say where it is to be fetched. */
export function UploadPanel({ onSending }: Props) {
  const [folder, setFolder] = useState<AdapterFolder | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [request, setRequest] = useState<UploadRequest | null>(null);
  const [way, setWay] = useState("folder");
  const { upload, start, pause, reset } = useUpload();
  const sending = sendingOf(upload);
  useEffect(() => onSending(sending), [sending, onSending]);

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
          onPause={pause}
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
      <SegmentedControl
        size="xs"
        w="fit-content"
        aria-label="Where the adapter is"
        data={WAYS}
        value={way}
        onChange={setWay}
      />
      {way === "folder" ? <FolderDropzone onFiles={receive} /> : <ImportForm />}
      {problem && way === "folder" && (
        <Alert color="red" icon={<IconAlertCircle aria-hidden />} role="alert">
          {problem}
        </Alert>
      )}
    </Stack>
  );
}

/** Also the one that has just been closed: the list below may not know that yet. */
function sendingOf(upload: Upload): string | null {
  if (upload.step === "done") return upload.version.id;
  return "versionId" in upload ? upload.versionId : null;
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
