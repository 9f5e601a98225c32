import {
  Alert,
  Button,
  Group,
  PasswordInput,
  Select,
  Stack,
  Switch,
  Text,
  TextInput,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import { messageOf } from "../api/errors";
import type { JoiningRole, SingleSignOn } from "../api/types";
import { Section } from "../security/Section";
import { useTenant } from "../session/context";
import { CopyText } from "../shared/CopyText";
import { confirmDanger, notifyDone, tell } from "../shared/confirm";
import { useRemoveProvider, useSetProvider } from "./queries";

const ROLES: { value: JoiningRole; label: string }[] = [
  { value: "viewer", label: "Viewer" },
  { value: "developer", label: "Developer" },
];

export function ProviderSection({ found }: { found: SingleSignOn }) {
  return (
    <Section
      title="Single sign-on"
      text="Your identity provider (OpenID Connect) signs your people in. Owners can always come in by password, for the day it fails."
      action={found.provider && <RemoveButton />}
    >
      <Stack gap={4}>
        <Text size="sm">
          Register Veneer there as a web application, with this redirect address:
        </Text>
        <CopyText value={found.redirect_uri} label="Copy the redirect address" />
      </Stack>
      {found.provider && <WayIn />}
      {/* A form begins with what is stored: stored anew, it begins anew. */}
      <ProviderForm key={JSON.stringify(found.provider)} found={found} />
    </Section>
  );
}

function WayIn() {
  const { membership } = useTenant();
  if (!membership) return null;
  return (
    <Stack gap={4}>
      <Text size="sm">Your people come in here:</Text>
      <CopyText
        value={`${location.origin}/?tenant=${membership.tenant.slug}`}
        label="Copy the address to come in"
      />
    </Stack>
  );
}

function ProviderForm({ found }: { found: SingleSignOn }) {
  const set = useSetProvider();
  const form = useForm({
    initialValues: {
      issuer: found.provider?.issuer ?? "",
      client_id: found.provider?.client_id ?? "",
      client_secret: "",
      default_role: found.provider?.default_role ?? ("viewer" as JoiningRole),
      is_required: found.is_required,
    },
    validate: {
      issuer: (value) => (value.trim() ? null : "Enter the issuer's address"),
      client_id: (value) => (value.trim() ? null : "Enter the client id"),
    },
  });
  const save = form.onSubmit(({ client_secret, ...values }) =>
    set.mutate(client_secret ? { ...values, client_secret } : values, {
      onSuccess: () => notifyDone("Single sign-on is saved."),
    }),
  );
  return (
    <form onSubmit={save} noValidate>
      <Stack maw="36rem">
        {set.isError && (
          <Alert color="red" role="alert">
            {messageOf(set.error)}
          </Alert>
        )}
        <TextInput
          label="Issuer"
          description="As the provider writes it: https://login.example.com"
          type="url"
          {...form.getInputProps("issuer")}
        />
        <TextInput label="Client id" autoComplete="off" {...form.getInputProps("client_id")} />
        <PasswordInput
          label="Client secret"
          description={found.provider ? "Kept sealed; leave it empty to keep it" : "Kept sealed"}
          autoComplete="off"
          {...form.getInputProps("client_secret")}
        />
        <Select
          label="Role of those who join"
          description="Whoever signs in for the first time, with an address of a confirmed domain"
          data={ROLES}
          allowDeselect={false}
          {...form.getInputProps("default_role")}
        />
        <Switch
          label="Members must come in this way"
          description="Except owners. API keys go on."
          {...form.getInputProps("is_required", { type: "checkbox" })}
        />
        <Group>
          <Button type="submit" loading={set.isPending}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function RemoveButton() {
  const remove = useRemoveProvider();
  const confirm = () =>
    confirmDanger({
      title: "Remove single sign-on?",
      text: "Whoever came in through it is signed out at once. Accounts and memberships stay; who has no password asks for a link to one.",
      confirm: "Remove it",
      onConfirm: () =>
        tell(remove.mutateAsync(undefined), "Single sign-on is removed.", "Nothing was removed"),
    });
  return (
    <Button variant="subtle" color="red" onClick={confirm} loading={remove.isPending}>
      Remove
    </Button>
  );
}
