import { Alert, Anchor, Button, PasswordInput, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useDisclosure } from "@mantine/hooks";
import { IconAlertCircle } from "@tabler/icons-react";
import { messageOf } from "../api/errors";
import { CompanySignIn } from "./CompanySignIn";
import { ForgottenPassword } from "./ForgottenPassword";
import { factorsAskedBy, useSignIn } from "./queries";
import { SecondStep } from "./SecondStep";

interface Props {
  email?: string;
  /** Short name of the company whose people were sent here. */
  company?: string;
}

export function SignInForm({ email = "", company = "" }: Props) {
  const signIn = useSignIn();
  const form = useForm({
    initialValues: { email, password: "" },
    validate: {
      email: (value) => (/^\S+@\S+$/.test(value) ? null : "Enter the e-mail address of your login"),
      password: (value) => (value ? null : "Enter your password"),
    },
  });
  const [forgotten, { open, close }] = useDisclosure(false);
  const [throughCompany, companyStep] = useDisclosure(Boolean(company));
  const factors = factorsAskedBy(signIn.error);
  if (factors) return <SecondStep factors={factors} onBack={signIn.reset} />;
  if (forgotten) return <ForgottenPassword email={form.values.email} onBack={close} />;
  if (throughCompany) {
    return <CompanySignIn where={company || form.values.email} onBack={companyStep.close} />;
  }
  return (
    <form onSubmit={form.onSubmit((values) => signIn.mutate(values))} noValidate>
      <Stack>
        {signIn.isError && (
          <Alert color="red" icon={<IconAlertCircle aria-hidden />} role="alert">
            {messageOf(signIn.error)}
          </Alert>
        )}
        <TextInput
          label="E-mail"
          type="email"
          autoComplete="username"
          autoFocus={!email}
          {...form.getInputProps("email")}
        />
        <PasswordInput
          label="Password"
          autoComplete="current-password"
          autoFocus={Boolean(email)}
          {...form.getInputProps("password")}
        />
        <Button type="submit" fullWidth mt="xs" loading={signIn.isPending}>
          Sign in
        </Button>
        <Button variant="default" fullWidth onClick={companyStep.open}>
          Company sign-in
        </Button>
        <Anchor component="button" type="button" size="sm" onClick={open}>
          Forgotten your password?
        </Anchor>
      </Stack>
    </form>
  );
}
