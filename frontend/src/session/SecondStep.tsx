import { Alert, Anchor, Button, Divider, Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { messageOf } from "../api/errors";
import { canUsePasskeys } from "./passkey";
import { useSignInCode, useSignInPasskey } from "./queries";

interface Props {
  /** `totp`, `passkey`: what the account has. A recovery code stands in for either. */
  factors: string[];
  onBack: () => void;
}

/** The password was right: now a code or a passkey. */
export function SecondStep({ factors, onBack }: Props) {
  const byCode = useSignInCode();
  const byPasskey = useSignInPasskey();
  const error = byCode.error ?? byPasskey.error;
  const offersPasskey = factors.includes("passkey") && canUsePasskeys();
  return (
    <Stack>
      {error && (
        <Alert color="red" role="alert">
          {messageOf(error)}
        </Alert>
      )}
      {offersPasskey && (
        <>
          <Button fullWidth loading={byPasskey.isPending} onClick={() => byPasskey.mutate()}>
            Use a passkey
          </Button>
          <Divider label="or" />
        </>
      )}
      <CodeForm
        hint={factors.includes("totp") ? "The six digits that your app shows" : "A recovery code"}
        pending={byCode.isPending}
        onCode={(code) => byCode.mutate({ code })}
      />
      <Anchor component="button" type="button" size="sm" onClick={onBack}>
        Sign in as somebody else
      </Anchor>
    </Stack>
  );
}

interface CodeFormProps {
  hint: string;
  pending: boolean;
  onCode: (code: string) => void;
}

function CodeForm({ hint, pending, onCode }: CodeFormProps) {
  const form = useForm({
    initialValues: { code: "" },
    validate: { code: (value) => (value.trim() ? null : "Enter a code") },
  });
  return (
    <form onSubmit={form.onSubmit(({ code }) => onCode(code))} noValidate>
      <Stack>
        <TextInput
          label="Code"
          description={hint}
          autoComplete="one-time-code"
          autoFocus
          {...form.getInputProps("code")}
        />
        <Button type="submit" fullWidth loading={pending}>
          Continue
        </Button>
        <Text size="xs" c="dimmed">
          Lost your device? Enter one of your recovery codes.
        </Text>
      </Stack>
    </form>
  );
}
