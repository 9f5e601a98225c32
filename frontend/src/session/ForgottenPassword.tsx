import { Alert, Anchor, Button, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { messageOf } from "../api/errors";
import { useAskForReset } from "./queries";

/** Asks for a link by mail; the server's answer is the same whether the account exists or not. */
export function ForgottenPassword({ email, onBack }: { email: string; onBack: () => void }) {
  const ask = useAskForReset();
  const form = useForm({
    initialValues: { email },
    validate: {
      email: (value) => (/^\S+@\S+$/.test(value) ? null : "Enter the e-mail address of your login"),
    },
  });
  return (
    <form onSubmit={form.onSubmit((values) => ask.mutate(values))} noValidate>
      <Stack>
        {ask.isError && (
          <Alert color="red" role="alert">
            {messageOf(ask.error)}
          </Alert>
        )}
        {ask.isSuccess ? (
          <Alert color="veneer" role="status">
            If the account exists, a link to a new password is on its way. It works once, for an
            hour.
          </Alert>
        ) : (
          <>
            <TextInput
              label="E-mail"
              type="email"
              autoComplete="username"
              autoFocus
              {...form.getInputProps("email")}
            />
            <Button type="submit" fullWidth loading={ask.isPending}>
              Mail me a link
            </Button>
          </>
        )}
        <Anchor component="button" type="button" size="sm" onClick={onBack}>
          Back to signing in
        </Anchor>
      </Stack>
    </form>
  );
}
