import { Modal } from "@mantine/core";
import { useForm } from "@mantine/form";
import { FormModal } from "../shared/FormModal";
import { useCreateWebhook } from "./queries";
import { SecretView } from "./SecretView";
import { urlProblem, WebhookFields, type WebhookValues } from "./WebhookFields";

const EMPTY: WebhookValues = { url: "", kinds: [] };

/** First the form; then the secret, once. */
export function CreateWebhookModal({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const create = useCreateWebhook();
  const form = useForm({ initialValues: EMPTY, validate: { url: urlProblem } });
  const close = () => {
    onClose();
    create.reset();
    form.reset();
  };
  if (create.data) {
    return (
      <Modal
        opened={opened}
        onClose={close}
        title="The webhook's secret"
        closeOnClickOutside={false}
        closeOnEscape={false}
      >
        <SecretView secret={create.data.secret} onClose={close} />
      </Modal>
    );
  }
  return (
    <FormModal
      title="Add a webhook"
      opened={opened}
      onClose={close}
      onSubmit={form.onSubmit(({ url, kinds }) => create.mutate({ url: url.trim(), kinds }))}
      submit="Add the webhook"
      pending={create.isPending}
      error={create.error}
    >
      <WebhookFields url={form.getInputProps("url")} kinds={form.getInputProps("kinds")} />
    </FormModal>
  );
}
