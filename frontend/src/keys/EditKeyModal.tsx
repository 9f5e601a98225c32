import { TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { ApiKey } from "../api/types";
import { FormModal } from "../shared/FormModal";
import { useChangeKey } from "./queries";
import { ReachFields } from "./ReachFields";
import { reachBody, reachOf } from "./reach";

interface Props {
  apiKey: ApiKey;
  opened: boolean;
  onClose: () => void;
}

export function EditKeyModal({ apiKey, opened, onClose }: Props) {
  const change = useChangeKey();
  const form = useForm({
    initialValues: { name: apiKey.name, ...reachOf(apiKey) },
    validate: { name: (value) => (value.trim() ? null : "A key needs a name") },
  });
  const submit = (values: typeof form.values) =>
    change.mutate(
      { id: apiKey.id, name: values.name.trim(), ...reachBody(values) },
      { onSuccess: onClose },
    );
  return (
    <FormModal
      title={`Change ${apiKey.name}`}
      opened={opened}
      onClose={onClose}
      onSubmit={form.onSubmit(submit)}
      submit="Save"
      pending={change.isPending}
      error={change.error}
    >
      <TextInput label="Name" maxLength={100} data-autofocus {...form.getInputProps("name")} />
      <ReachFields
        models={form.getInputProps("models")}
        networks={form.getInputProps("networks")}
      />
    </FormModal>
  );
}
