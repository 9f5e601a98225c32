import { Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";
import { FormModal } from "../shared/FormModal";
import { useResolve } from "./queries";

export function ResolveModal({ id, onClose }: { id: number; onClose: () => void }) {
  const resolve = useResolve(id);
  const form = useForm({
    initialValues: { note: "" },
    validate: { note: (value) => (value.trim() ? null : "Say what it was and what was done") },
  });
  return (
    <FormModal
      title="Resolve the discrepancy"
      opened
      onClose={onClose}
      onSubmit={form.onSubmit(({ note }) => resolve.mutate(note.trim(), { onSuccess: onClose }))}
      submit="Resolve"
      pending={resolve.isPending}
      error={resolve.error}
    >
      <Textarea
        label="What was found and done"
        description="Kept for ever, with your name."
        maxLength={500}
        rows={3}
        data-autofocus
        {...form.getInputProps("note")}
      />
    </FormModal>
  );
}
