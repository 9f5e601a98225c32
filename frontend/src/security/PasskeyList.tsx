import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useDisclosure } from "@mantine/hooks";
import type { Factors, Passkey } from "../api/types";
import { canUsePasskeys } from "../session/passkey";
import { notifyDone, notifyFailed } from "../shared/confirm";
import { FormModal } from "../shared/FormModal";
import { formatAgo, formatDate } from "../shared/time";
import { useAddPasskey, useRemovePasskey, useStartPasskey } from "./factors";
import { PasswordPrompt } from "./PasswordPrompt";

interface Props {
  factors: Factors;
  onCodes: (codes: string[]) => void;
}

export function PasskeyList({ factors, onCodes }: Props) {
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Stack gap={0}>
          <Text fw={600}>Passkeys</Text>
          <Text size="sm" c="dimmed">
            {canUsePasskeys()
              ? "Your device or a security key, in place of codes."
              : "Open the console by its host name, over https, to add one."}
          </Text>
        </Stack>
        {canUsePasskeys() && <AddButton onCodes={onCodes} />}
      </Group>
      {factors.passkeys.map((passkey) => (
        <PasskeyRow key={passkey.id} passkey={passkey} />
      ))}
    </Stack>
  );
}

function PasskeyRow({ passkey }: { passkey: Passkey }) {
  const [opened, { open, close }] = useDisclosure(false);
  const remove = useRemovePasskey(passkey.id);
  const used = passkey.used_at ? `, used ${formatAgo(passkey.used_at)}` : "";
  return (
    <Group justify="space-between">
      <Text size="sm">{`${passkey.name}: added ${formatDate(passkey.created_at)}${used}`}</Text>
      <Button
        size="compact-sm"
        variant="subtle"
        color="red"
        onClick={open}
        aria-label={`Remove the passkey ${passkey.name}`}
      >
        Remove
      </Button>
      <PasswordPrompt
        title={`Remove ${passkey.name}`}
        submit="Remove"
        opened={opened}
        onClose={close}
        change={remove}
        onDone={() => {
          close();
          notifyDone(`${passkey.name} opens nothing any more.`);
        }}
      />
    </Group>
  );
}

/** First the password, then a name; then the browser takes over. */
function AddButton({ onCodes }: { onCodes: (codes: string[]) => void }) {
  const [opened, { open, close }] = useDisclosure(false);
  const start = useStartPasskey();
  const end = () => {
    close();
    start.reset();
  };
  return (
    <>
      <Button variant="default" onClick={open}>
        Add a passkey
      </Button>
      {start.data ? (
        <NameModal options={start.data.options} opened={opened} onClose={end} onCodes={onCodes} />
      ) : (
        <PasswordPrompt
          title="Add a passkey"
          submit="Continue"
          opened={opened}
          onClose={close}
          change={start}
          onDone={() => undefined}
        />
      )}
    </>
  );
}

interface NameProps {
  options: Record<string, unknown>;
  opened: boolean;
  onClose: () => void;
  onCodes: (codes: string[]) => void;
}

function NameModal({ options, opened, onClose, onCodes }: NameProps) {
  const add = useAddPasskey();
  const form = useForm({
    initialValues: { name: "" },
    validate: { name: (value) => (value.trim() ? null : "Enter a name") },
  });
  return (
    <FormModal
      title="Add a passkey"
      opened={opened}
      onClose={onClose}
      onSubmit={form.onSubmit(({ name }) =>
        add.mutate(
          { name, options },
          {
            onSuccess: ({ recovery_codes }) => {
              onClose();
              onCodes(recovery_codes);
              notifyDone(`${name} is added. Your other sessions have ended.`);
            },
            onError: (error) => {
              onClose();
              notifyFailed("The passkey was not added", error);
            },
          },
        ),
      )}
      submit="Ask my device"
      pending={add.isPending}
      error={null}
    >
      <TextInput
        label="Name"
        description="So that you know it again: laptop, blue key"
        data-autofocus
        {...form.getInputProps("name")}
      />
    </FormModal>
  );
}
