import { Alert, Anchor, Button, Center, PasswordInput, Stack } from "@mantine/core";
import { useForm } from "@mantine/form";
import { messageOf } from "../api/errors";
import { Doorway } from "./Doorway";
import { useNewPassword } from "./queries";

/** Where a link to a new password leads. */
export function ResetPage({ token }: { token: string }) {
  const choose = useNewPassword();
  const form = useForm({ initialValues: { password: "" } });
  if (choose.isSuccess) {
    return (
      <Doorway
        name="New password"
        title="Your password is set"
        text="All your sessions have ended."
      >
        <Center>
          <Anchor href="/">Sign in</Anchor>
        </Center>
      </Doorway>
    );
  }
  return (
    <Doorway name="New password" title="Choose a new password" text="The link works once.">
      <form onSubmit={form.onSubmit(({ password }) => choose.mutate({ token, password }))}>
        <Stack>
          {choose.isError && (
            <Alert color="red" role="alert">
              {messageOf(choose.error)}
            </Alert>
          )}
          <PasswordInput
            label="New password"
            description="At least 8 characters"
            autoComplete="new-password"
            autoFocus
            required
            {...form.getInputProps("password")}
          />
          <Button type="submit" fullWidth loading={choose.isPending}>
            Set the password
          </Button>
        </Stack>
      </form>
    </Doorway>
  );
}
