import { ActionIcon, Menu } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import {
  IconArrowBackUp,
  IconArrowsSplit2,
  IconDots,
  IconShare,
  IconTrash,
} from "@tabler/icons-react";
import type { Adapter } from "../api/types";
import { notifyDone, notifyFailed } from "../shared/confirm";
import { AliasModal } from "./AliasModal";
import { DeleteModal } from "./DeleteModal";
import { useRollBack } from "./queries";
import { ShareModal } from "./ShareModal";
import { readyVersions, servingText, splitsText } from "./versions";

export function AdapterMenu({ adapter }: { adapter: Adapter }) {
  const [aliasOpen, alias] = useDisclosure(false);
  const [shareOpen, share] = useDisclosure(false);
  const [deleteOpen, deletion] = useDisclosure(false);
  const rollBack = useRollBack(adapter);
  const before = adapter.alias?.rolls_back_to;
  const goBack = () =>
    rollBack.mutate(undefined, {
      onSuccess: (now) => notifyDone(`${adapter.name} serves ${servingText(now)} again.`),
      onError: (error) => notifyFailed("It was not rolled back", error),
    });
  return (
    <>
      <Menu position="bottom-end" width={230}>
        <Menu.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`Actions for ${adapter.name}`}
            loading={rollBack.isPending}
          >
            <IconDots size={18} aria-hidden />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<IconArrowsSplit2 size={16} aria-hidden />}
            disabled={readyVersions(adapter).length === 0}
            onClick={alias.open}
          >
            Choose what serves
          </Menu.Item>
          {before && (
            <Menu.Item leftSection={<IconArrowBackUp size={16} aria-hidden />} onClick={goBack}>
              {`Roll back to ${splitsText(before)}`}
            </Menu.Item>
          )}
          <Menu.Item leftSection={<IconShare size={16} aria-hidden />} onClick={share.open}>
            Share
          </Menu.Item>
          <Menu.Item
            color="red"
            leftSection={<IconTrash size={16} aria-hidden />}
            onClick={deletion.open}
          >
            Delete
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <AliasModal adapter={adapter} opened={aliasOpen} onClose={alias.close} />
      <ShareModal adapter={adapter} opened={shareOpen} onClose={share.close} />
      <DeleteModal adapter={adapter} opened={deleteOpen} onClose={deletion.close} />
    </>
  );
}
