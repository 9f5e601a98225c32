import { Alert, Anchor, Button, Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { messageOf } from "../api/errors";
import { useLeaveForCompany } from "./company";

interface Props {
  /** An address or a short name that is known already. */
  where: string;
  onBack: () => void;
}

/** Asks which company, and goes to its own sign-in page. */
export function CompanySignIn({ where, onBack }: Props) {
  const leave = useLeaveForCompany();
  const form = useForm({
    initialValues: { where },
    validate: { where: (value) => (value.trim() ? null : "Enter your work e-mail address") },
  });
  return (
    <form onSubmit={form.onSubmit((values) => leave.mutate(values.where.trim()))} noValidate>
      <Stack>
        {leave.isError && (
          <Alert color="red" role="alert">
            {messageOf(leave.error)}
          </Alert>
        )}
        <Text size="sm">Sign in with your company: on its own page, then back here.</Text>
        <TextInput
          label="Work e-mail, or your company's short name"
          autoComplete="username"
          autoFocus
          {...form.getInputProps("where")}
        />
        <Button type="submit" fullWidth loading={leave.isPending || leave.isSuccess}>
          Go to my company
        </Button>
        <Anchor component="button" type="button" size="sm" onClick={onBack}>
          Sign in with a password
        </Anchor>
      </Stack>
    </form>
  );
}
