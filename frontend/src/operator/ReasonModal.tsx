import { Text, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { UseMutationResult } from "@tanstack/react-query";
import { FormModal } from "../shared/FormModal";

interface Props {
  title: string;
  text: string;
  submit: string;
  opened: boolean;
  onClose: () => void;
  change: UseMutationResult<unknown, Error, string>;
  onDone: () => void;
}

/** What an operator does to a tenant has a reason, which the tenant can read. */
export function ReasonModal({ title, text, submit, opened, onClose, change, onDone }: Props) {
  const form = useForm({
    initialValues: { reason: "" },
    validate: { reason: (value) => (value.trim() ? null : "Enter a reason") },
  });
  const close = () => {
    onClose();
    change.reset();
    form.reset();
  };
  return (
    <FormModal
      title={title}
      opened={opened}
      onClose={close}
      onSubmit={form.onSubmit(({ reason }) =>
        change.mutate(reason, {
          onSuccess: () => {
            close();
            onDone();
          },
        }),
      )}
      submit={submit}
      pending={change.isPending}
      error={change.error}
    >
      <Text size="sm">{text}</Text>
      <Textarea
        label="Reason"
        description="The tenant reads it in its audit log"
        maxLength={300}
        data-autofocus
        {...form.getInputProps("reason")}
      />
    </FormModal>
  );
}
