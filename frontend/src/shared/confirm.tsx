import { Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { notifications } from "@mantine/notifications";
import { messageOf } from "../api/errors";

interface Confirmation {
  title: string;
  text: string;
  confirm: string;
  onConfirm: () => void;
}

/** Asks before something that cannot be undone. */
export function confirmDanger({ title, text, confirm, onConfirm }: Confirmation): void {
  modals.openConfirmModal({
    title,
    children: <Text size="sm">{text}</Text>,
    labels: { confirm, cancel: "Cancel" },
    confirmProps: { color: "red.9" },
    onConfirm,
  });
}

export function notifyDone(message: string): void {
  notifications.show({ message, color: "veneer" });
}

export function notifyFailed(title: string, error: unknown): void {
  notifications.show({ title, message: messageOf(error), color: "red", autoClose: 10_000 });
}
