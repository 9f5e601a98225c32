import {
  Alert,
  Box,
  Button,
  Card,
  PasswordInput,
  Stack,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import { IconAlertCircle } from "@tabler/icons-react";
import { messageOf } from "../api/errors";
import { ColorSchemeToggle } from "../app/ColorSchemeToggle";
import { Mark } from "../brand/Brand";
import { useDocumentName } from "../shared/useDocumentName";
import { useSignIn } from "./queries";
import classes from "./SignInPage.module.css";

export function SignInPage() {
  useDocumentName("Sign in");
  const signIn = useSignIn();
  const form = useForm({
    initialValues: { email: "", password: "" },
    validate: {
      email: (value) => (/^\S+@\S+$/.test(value) ? null : "Enter the e-mail address of your login"),
      password: (value) => (value ? null : "Enter your password"),
    },
  });
  return (
    <main className={classes.page}>
      <Box pos="absolute" top={16} right={16}>
        <ColorSchemeToggle />
      </Box>
      <Card withBorder shadow="sm" padding="xl" radius="lg" className={classes.card}>
        <Stack gap={4} align="center" mb="lg">
          <Mark size={44} />
          <Title order={1} mt="xs">
            Sign in to Veneer
          </Title>
          <Text c="dimmed" size="sm" ta="center" style={{ textWrap: "balance" }}>
            Upload adapters, issue keys, read what a token costs.
          </Text>
        </Stack>
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
              autoFocus
              {...form.getInputProps("email")}
            />
            <PasswordInput
              label="Password"
              autoComplete="current-password"
              {...form.getInputProps("password")}
            />
            <Button type="submit" fullWidth mt="xs" loading={signIn.isPending}>
              Sign in
            </Button>
          </Stack>
        </form>
      </Card>
    </main>
  );
}
