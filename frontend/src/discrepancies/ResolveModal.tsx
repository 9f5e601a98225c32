import { Text, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { Discrepancy } from "../api/types";
import { detailWords } from "../audit/words";
import { FormModal } from "../shared/FormModal";
import { useResolve } from "./queries";

export function ResolveModal({ row, onClose }: { row: Discrepancy; onClose: () => void }) {
  const resolve = useResolve(row.id);
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
      <Text size="sm" c="dimmed" style={{ overflowWrap: "anywhere" }}>
        {`${row.request_id}: ${row.kind.replaceAll("_", " ")}. Found: ${detailWords(row.details)}.`}
      </Text>
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
