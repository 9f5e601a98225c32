import { ActionIcon, Menu } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconBan, IconDots, IconGauge, IconPencil, IconRefresh } from "@tabler/icons-react";
import type { ApiKey } from "../api/types";
import { LimitsModal } from "../limits/LimitsModal";
import { confirmDanger, tell } from "../shared/confirm";
import { EditKeyModal } from "./EditKeyModal";
import { useRevokeKey } from "./queries";
import { RotateKeyModal } from "./RotateKeyModal";

/** What can be done to a key that works. */
export function KeyActions({ apiKey }: { apiKey: ApiKey }) {
  const revoke = useRevokeKey();
  const [editing, edit] = useDisclosure(false);
  const [rotating, rotation] = useDisclosure(false);
  const [limiting, limits] = useDisclosure(false);
  const confirm = () =>
    confirmDanger({
      title: `Revoke ${apiKey.name}?`,
      text: "Programs that use this key are refused within a second. This cannot be undone.",
      confirm: "Revoke the key",
      onConfirm: () =>
        tell(
          revoke.mutateAsync(apiKey.id),
          `${apiKey.name} is revoked.`,
          `${apiKey.name} was not revoked`,
        ),
    });
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`Actions for ${apiKey.name}`}
            loading={revoke.isPending}
          >
            <IconDots size={16} aria-hidden />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconPencil size={14} aria-hidden />} onClick={edit.open}>
            Change
          </Menu.Item>
          <Menu.Item leftSection={<IconGauge size={14} aria-hidden />} onClick={limits.open}>
            Limits
          </Menu.Item>
          <Menu.Item leftSection={<IconRefresh size={14} aria-hidden />} onClick={rotation.open}>
            Rotate
          </Menu.Item>
          <Menu.Item color="red" leftSection={<IconBan size={14} aria-hidden />} onClick={confirm}>
            Revoke
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {editing && <EditKeyModal apiKey={apiKey} opened onClose={edit.close} />}
      {limiting && (
        <LimitsModal
          whose={{ level: "key", id: apiKey.id, label: apiKey.name }}
          onClose={limits.close}
        />
      )}
      <RotateKeyModal apiKey={apiKey} opened={rotating} onClose={rotation.close} />
    </>
  );
}
