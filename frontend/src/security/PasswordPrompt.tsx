import { PasswordInput, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { UseMutationResult } from "@tanstack/react-query";
import { FormModal } from "../shared/FormModal";

interface Props<Output> {
  title: string;
  text?: string;
  submit: string;
  opened: boolean;
  onClose: () => void;
  change: UseMutationResult<Output, Error, string>;
  /** The caller closes, or goes on to the next step. */
  onDone: (output: Output) => void;
}

/** Asks for the password before something that guards the account changes. */
export function PasswordPrompt<Output>(props: Props<Output>) {
  const form = useForm({
    initialValues: { password: "" },
    validate: { password: (value) => (value ? null : "Enter your password") },
  });
  const close = () => {
    props.onClose();
    props.change.reset();
    form.reset();
  };
  return (
    <FormModal
      title={props.title}
      opened={props.opened}
      onClose={close}
      onSubmit={form.onSubmit(({ password }) =>
        props.change.mutate(password, {
          onSuccess: (output) => {
            form.reset();
            props.onDone(output);
          },
        }),
      )}
      submit={props.submit}
      pending={props.change.isPending}
      error={props.change.error}
    >
      {props.text && <Text size="sm">{props.text}</Text>}
      <PasswordInput
        label="Your password"
        autoComplete="current-password"
        data-autofocus
        {...form.getInputProps("password")}
      />
    </FormModal>
  );
}
