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

/** How a deed went: also where what asked for it, the row of a thing that is gone now, has left the page by then. */
export function tell(deed: Promise<unknown>, done: string, failed: string): void {
  deed.then(
    () => notifyDone(done),
    (error) => notifyFailed(failed, error),
  );
}

export function notifyFailed(title: string, error: unknown): void {
  notifications.show({ title, message: messageOf(error), color: "red", autoClose: 10_000 });
}
