import { Alert, Button, Group, Progress, Text } from "@mantine/core";
import { IconCloudDownload, IconPlayerPause } from "@tabler/icons-react";
import type { Version } from "../api/types";
import { confirmDanger, notifyFailed } from "../shared/confirm";
import { formatBytes, formatShare } from "../shared/numbers";
import { useDeleteVersion } from "./queries";
import { isUnfinished, receivedShare } from "./versions";

interface Props {
  version: Version;
  canWrite: boolean;
}

/** A version whose files are not all there: being fetched, or waiting for whoever sends them. */
export function UnfinishedVersion({ version, canWrite }: Props) {
  const isUpload = isUnfinished(version);
  const share = receivedShare(version);
  const received = version.files.reduce((sum, file) => sum + file.received_bytes, 0);
  const title = isUpload
    ? `Version ${version.number} is uploaded in part`
    : `Version ${version.number} is fetched from ${version.source}`;
  return (
    <Alert
      mt="md"
      role="group"
      color="blue"
      icon={isUpload ? <IconPlayerPause aria-hidden /> : <IconCloudDownload aria-hidden />}
      title={title}
    >
      {share !== null && (
        <Progress
          value={100 * share}
          mb={6}
          aria-label={`${formatShare(share)} of version ${version.number} is there`}
        />
      )}
      <Group justify="space-between">
        <Text size="sm" className="figures">
          {share === null
            ? "Nothing is there yet."
            : `${formatBytes(received)} of ${formatBytes(version.size_bytes)} are there.`}
          {isUpload && " Choose the same folder again to go on from here; it waits for a day."}
        </Text>
        {canWrite && <Discard version={version} />}
      </Group>
    </Alert>
  );
}

function Discard({ version }: { version: Version }) {
  const remove = useDeleteVersion();
  const confirm = () =>
    confirmDanger({
      title: `Discard version ${version.number}?`,
      text: "What is there of its files goes. The adapter's other versions stay.",
      confirm: "Discard it",
      onConfirm: () =>
        remove.mutate(version.id, {
          onError: (error) => notifyFailed("It was not discarded", error),
        }),
    });
  return (
    <Button size="compact-xs" variant="default" onClick={confirm} loading={remove.isPending}>
      Discard
    </Button>
  );
}
