import { Image, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import type { NewTotp } from "../api/types";
import { CopyText } from "../shared/CopyText";
import { notifyDone } from "../shared/confirm";
import { FormModal } from "../shared/FormModal";
import { useConfirmTotp, useStartTotp } from "./factors";
import { PasswordPrompt } from "./PasswordPrompt";

interface Props {
  opened: boolean;
  onClose: () => void;
  onCodes: (codes: string[]) => void;
}

/** First the password; then the app is shown its secret, and shows a first code. */
export function TotpModal({ opened, onClose, onCodes }: Props) {
  const start = useStartTotp();
  const close = () => {
    onClose();
    start.reset();
  };
  if (!start.data) {
    return (
      <PasswordPrompt
        title="Set up an app"
        text="Any app for one-time codes will do."
        submit="Continue"
        opened={opened}
        onClose={onClose}
        change={start}
        onDone={() => undefined}
      />
    );
  }
  return <ScanModal totp={start.data} opened={opened} onClose={close} onCodes={onCodes} />;
}

function ScanModal({ totp, opened, onClose, onCodes }: Props & { totp: NewTotp }) {
  const confirm = useConfirmTotp();
  const form = useForm({
    initialValues: { code: "" },
    validate: { code: (value) => (/^\d{6}$/.test(value.replace(/\s/g, "")) ? null : "Six digits") },
  });
  return (
    <FormModal
      title="Set up an app"
      opened={opened}
      onClose={onClose}
      onSubmit={form.onSubmit((values) =>
        confirm.mutate(values, {
          onSuccess: ({ recovery_codes }) => {
            onClose();
            onCodes(recovery_codes);
            notifyDone("Codes are on. Your other sessions have ended.");
          },
        }),
      )}
      submit="Turn on"
      pending={confirm.isPending}
      error={confirm.error}
    >
      <Text size="sm">Scan this with the app, or type the secret into it.</Text>
      <Image src={totp.qr} alt="QR code of the secret" w={220} mx="auto" />
      <CopyText value={totp.secret} label="Copy the secret" />
      <TextInput
        label="The code that it shows"
        inputMode="numeric"
        autoComplete="one-time-code"
        data-autofocus
        {...form.getInputProps("code")}
      />
    </FormModal>
  );
}
