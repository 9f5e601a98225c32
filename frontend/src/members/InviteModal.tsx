import {
  Alert,
  Button,
  Code,
  CopyButton,
  Group,
  Modal,
  Select,
  Stack,
  TextInput,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import type { Role, SentInvitation } from "../api/types";
import { useTenant } from "../session/context";
import { FormModal } from "../shared/FormModal";
import { useInvite } from "./queries";
import { grantable } from "./roles";

interface Props {
  opened: boolean;
  onClose: () => void;
}

/** First whom, as what; then the link, where it did not go by mail. */
export function InviteModal({ opened, onClose }: Props) {
  const { membership } = useTenant();
  const invite = useInvite();
  const firstRole: Role = "developer";
  const form = useForm({
    initialValues: { email: "", role: firstRole },
    validate: {
      email: (value) => (/^\S+@\S+$/.test(value.trim()) ? null : "Enter an e-mail address"),
    },
  });
  const close = () => {
    onClose();
    invite.reset();
    form.reset();
  };
  if (invite.data) return <Sent sent={invite.data} opened={opened} onClose={close} />;
  const roles = grantable(membership?.role ?? "viewer");
  return (
    <FormModal
      title="Invite somebody"
      opened={opened}
      onClose={close}
      onSubmit={form.onSubmit((values) => invite.mutate(values))}
      submit="Invite"
      pending={invite.isPending}
      error={invite.error}
    >
      <TextInput label="E-mail" type="email" data-autofocus {...form.getInputProps("email")} />
      <Select
        label="Role"
        description={roles.find(({ value }) => value === form.values.role)?.description}
        data={roles.map(({ value, label }) => ({ value, label }))}
        allowDeselect={false}
        {...form.getInputProps("role")}
      />
    </FormModal>
  );
}

function Sent({ sent, opened, onClose }: Props & { sent: SentInvitation }) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={`${sent.email} is invited`}
      closeOnClickOutside={!sent.link}
    >
      <Stack>
        <Alert color={sent.link ? "yellow" : "veneer"}>
          {sent.link
            ? "Give them this link. It works once, for a week, and is not shown again. Whoever has it can join in their name."
            : "The link is on its way by mail. It works once, for a week."}
        </Alert>
        {sent.link && (
          <Code block style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>
            {sent.link}
          </Code>
        )}
        <Group justify="space-between">
          {sent.link && (
            <CopyButton value={sent.link}>
              {({ copied, copy }) => (
                <Button onClick={copy}>{copied ? "Copied" : "Copy the link"}</Button>
              )}
            </CopyButton>
          )}
          <Button variant="default" onClick={onClose}>
            Done
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
