import { ActionIcon, Menu } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import {
  IconDots,
  IconPencil,
  IconPlayerPause,
  IconRefresh,
  IconSend,
  IconTrash,
} from "@tabler/icons-react";
import type { Webhook } from "../api/types";
import { confirmDanger, notifyFailed, tell } from "../shared/confirm";
import { EditWebhookModal } from "./EditWebhookModal";
import { useChangeWebhook, useDeleteWebhook, useTestWebhook } from "./queries";
import { RotateSecretModal } from "./RotateSecretModal";

export function WebhookMenu({ webhook }: { webhook: Webhook }) {
  const [editing, edit] = useDisclosure(false);
  const [rotating, rotation] = useDisclosure(false);
  const test = useTestWebhook();
  const { confirmOff, confirmDelete } = useEndings(webhook);
  const sendTest = () =>
    tell(
      test.mutateAsync(webhook.id),
      "A test is on its way: its delivery shows what comes of it.",
      "The test was not sent",
    );
  const isOn = webhook.disabled_at === null;
  return (
    <>
      <Menu position="bottom-end" width={210}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${webhook.url}`}>
            <IconDots size={18} aria-hidden />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<IconSend size={16} aria-hidden />}
            onClick={sendTest}
            disabled={!isOn}
          >
            Send a test
          </Menu.Item>
          <Menu.Item leftSection={<IconPencil size={16} aria-hidden />} onClick={edit.open}>
            Change
          </Menu.Item>
          <Menu.Item leftSection={<IconRefresh size={16} aria-hidden />} onClick={rotation.open}>
            Rotate the secret
          </Menu.Item>
          {isOn && (
            <Menu.Item leftSection={<IconPlayerPause size={16} aria-hidden />} onClick={confirmOff}>
              Switch off
            </Menu.Item>
          )}
          <Menu.Item
            color="red"
            leftSection={<IconTrash size={16} aria-hidden />}
            onClick={confirmDelete}
          >
            Delete
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {editing && <EditWebhookModal webhook={webhook} onClose={edit.close} />}
      {rotating && <RotateSecretModal webhook={webhook} onClose={rotation.close} />}
    </>
  );
}

function useEndings(webhook: Webhook) {
  const change = useChangeWebhook();
  const remove = useDeleteWebhook();
  const confirmOff = () =>
    confirmDanger({
      title: "Switch the webhook off?",
      text: `Nothing more is sent to ${webhook.url}. What happens meanwhile waits until it is on again.`,
      confirm: "Switch it off",
      onConfirm: () =>
        change.mutate(
          { id: webhook.id, enabled: false },
          { onError: (error) => notifyFailed("The webhook was not switched off", error) },
        ),
    });
  const confirmDelete = () =>
    confirmDanger({
      title: "Delete the webhook?",
      text: `Nothing more is sent to ${webhook.url}, and the record of what was sent to it is gone.`,
      confirm: "Delete the webhook",
      onConfirm: () =>
        tell(
          remove.mutateAsync(webhook.id),
          "The webhook is deleted.",
          "The webhook was not deleted",
        ),
    });
  return { confirmOff, confirmDelete };
}
