import { Button, PasswordInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useDisclosure } from "@mantine/hooks";
import { useWorkspace } from "../session/context";
import { notifyDone } from "../shared/confirm";
import { FormModal } from "../shared/FormModal";
import { useChangePassword } from "./queries";
import { Section } from "./Section";

export function PasswordSection() {
  const [opened, { open, close }] = useDisclosure(false);
  return (
    <Section
      title="Password"
      text="A new one ends every other session of yours."
      action={
        <Button variant="default" onClick={open}>
          Change password
        </Button>
      }
    >
      <PasswordModal opened={opened} onClose={close} />
    </Section>
  );
}

function PasswordModal({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { session } = useWorkspace();
  const change = useChangePassword();
  const form = useForm({
    initialValues: { old_password: "", new_password: "" },
    validate: {
      old_password: (value) => (value ? null : "Enter the password you have now"),
      new_password: (value) => (value ? null : "Enter a new password"),
    },
  });
  const close = () => {
    onClose();
    change.reset();
    form.reset();
  };
  return (
    <FormModal
      title="Change password"
      opened={opened}
      onClose={close}
      onSubmit={form.onSubmit((values) =>
        change.mutate(values, {
          onSuccess: () => {
            close();
            notifyDone("Your password is changed. Every other session has ended.");
          },
        }),
      )}
      submit="Change"
      pending={change.isPending}
      error={change.error}
    >
      <input type="hidden" autoComplete="username" value={session.user.email} readOnly />
      <PasswordInput
        label="Password now"
        autoComplete="current-password"
        data-autofocus
        {...form.getInputProps("old_password")}
      />
      <PasswordInput
        label="New password"
        description="At least 8 characters"
        autoComplete="new-password"
        {...form.getInputProps("new_password")}
      />
    </FormModal>
  );
}
