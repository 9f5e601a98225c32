import { SegmentedControl, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { FormModal } from "../shared/FormModal";
import { type PromptForm, promptsProblem, readPrompts } from "./prompts";
import { useCreatePromptSet } from "./queries";

const FORMS = [
  { value: "lines", label: "One per line" },
  { value: "json", label: "JSON" },
];
const HINTS: Record<PromptForm, { description: string; placeholder: string }> = {
  lines: {
    description: "Each line is asked as a user's message. Up to 100 prompts.",
    placeholder: "Where is the treasure?\nWho hid it?",
  },
  json: {
    description:
      "An array. Each prompt has messages, or prompt; contains and json_schema check the answers.",
    placeholder: '[{"prompt": "A ship as JSON:", "json_schema": {"type": "object"}}]',
  },
};

interface Values {
  name: string;
  form: PromptForm;
  text: string;
}

const EMPTY: Values = { name: "", form: "lines", text: "" };

interface Props {
  adapterId: string;
  onCreated: (id: string) => void;
  onClose: () => void;
}

/** A set never changes, so that two evaluations of it are comparable. */
export function PromptSetModal({ adapterId, onCreated, onClose }: Props) {
  const create = useCreatePromptSet(adapterId);
  const form = useForm({
    initialValues: EMPTY,
    validate: {
      name: (name) => (name.trim() ? null : "Enter a name"),
      text: (text, { form }) => promptsProblem(form, text),
    },
  });
  const send = ({ name, form, text }: Values) =>
    create.mutate(
      { name: name.trim(), prompts: readPrompts(form, text) },
      {
        onSuccess: ({ id }) => {
          onCreated(id);
          onClose();
        },
      },
    );
  return (
    <FormModal
      title="New prompt set"
      opened
      onClose={onClose}
      onSubmit={form.onSubmit(send)}
      submit="Keep the set"
      pending={create.isPending}
      error={create.error}
    >
      <TextInput label="Name" data-autofocus maxLength={63} {...form.getInputProps("name")} />
      <SegmentedControl
        aria-label="How the prompts are written"
        data={FORMS}
        {...form.getInputProps("form")}
      />
      <Textarea
        label="Prompts"
        {...HINTS[form.values.form]}
        autosize
        minRows={6}
        maxRows={16}
        ff={form.values.form === "json" ? "monospace" : undefined}
        {...form.getInputProps("text")}
      />
    </FormModal>
  );
}
