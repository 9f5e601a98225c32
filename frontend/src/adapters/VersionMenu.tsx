import { ActionIcon, Menu } from "@mantine/core";
import { IconDots, IconDownload, IconTrash } from "@tabler/icons-react";
import type { Adapter, Version } from "../api/types";
import { confirmDanger, notifyFailed, tell } from "../shared/confirm";
import { formatBytes } from "../shared/numbers";
import { useDeleteVersion, useDownload } from "./queries";
import { trafficShare } from "./versions";

interface Props {
  adapter: Adapter;
  version: Version;
  canWrite: boolean;
}

/** The files as they were uploaded, and the version's end. */
export function VersionMenu({ adapter, version, canWrite }: Props) {
  const download = useDownload();
  const name = `${adapter.name}@${version.number}`;
  const save = (file: string) =>
    download.mutate(
      { versionId: version.id, name: file },
      { onError: (error) => notifyFailed(`${file} was not downloaded`, error) },
    );
  const confirmDelete = useVersionDeletion(version, name);
  const isServed = trafficShare(adapter, version.number) > 0;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="sm"
          loading={download.isPending}
          aria-label={`Actions for ${name}`}
        >
          <IconDots size={16} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {version.state === "ready" &&
          version.files.map((file) => (
            <Menu.Item
              key={file.name}
              leftSection={<IconDownload size={14} aria-hidden />}
              onClick={() => save(file.name)}
            >
              {`${file.name} (${formatBytes(file.size)})`}
            </Menu.Item>
          ))}
        {canWrite && (
          <Menu.Item
            color="red"
            leftSection={<IconTrash size={14} aria-hidden />}
            disabled={isServed}
            onClick={confirmDelete}
          >
            {isServed ? "Delete: it is served, choose another first" : "Delete the version"}
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}

function useVersionDeletion(version: Version, name: string): () => void {
  const remove = useDeleteVersion();
  return () =>
    confirmDanger({
      title: `Delete ${name}?`,
      text: `Its files go, and the name ${name} is refused from now on. Its number is not given again.`,
      confirm: "Delete the version",
      onConfirm: () =>
        tell(remove.mutateAsync(version.id), `${name} is deleted.`, `${name} was not deleted`),
    });
}
