import { useForm } from "@mantine/form";
import type { Webhook } from "../api/types";
import { FormModal } from "../shared/FormModal";
import { useChangeWebhook } from "./queries";
import { urlProblem, valuesOf, WebhookFields } from "./WebhookFields";

export function EditWebhookModal({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const change = useChangeWebhook();
  const form = useForm({ initialValues: valuesOf(webhook), validate: { url: urlProblem } });
  return (
    <FormModal
      title="Change the webhook"
      opened
      onClose={onClose}
      onSubmit={form.onSubmit(({ url, kinds }) =>
        change.mutate({ id: webhook.id, url: url.trim(), kinds }, { onSuccess: onClose }),
      )}
      submit="Save"
      pending={change.isPending}
      error={change.error}
    >
      <WebhookFields url={form.getInputProps("url")} kinds={form.getInputProps("kinds")} />
    </FormModal>
  );
}
