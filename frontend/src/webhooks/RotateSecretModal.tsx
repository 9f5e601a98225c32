import { Modal, Text } from "@mantine/core";
import type { Webhook } from "../api/types";
import { FormModal } from "../shared/FormModal";
import { useRotateWebhook } from "./queries";
import { SecretView } from "./SecretView";

export function RotateSecretModal({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const rotate = useRotateWebhook();
  if (rotate.data) {
    return (
      <Modal
        opened
        onClose={onClose}
        title="The new secret"
        closeOnClickOutside={false}
        closeOnEscape={false}
      >
        <SecretView secret={rotate.data.secret} onClose={onClose} />
      </Modal>
    );
  }
  return (
    <FormModal
      title="Rotate the secret"
      opened
      onClose={onClose}
      onSubmit={(event) => {
        event.preventDefault();
        rotate.mutate(webhook.id);
      }}
      submit="Rotate the secret"
      pending={rotate.isPending}
      error={rotate.error}
    >
      <Text size="sm">
        Messages are signed with a new secret from now on, and for a day with the old one as well:
        give the new one to your program until then.
      </Text>
    </FormModal>
  );
}
