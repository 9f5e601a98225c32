import { Badge, Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { messageOf } from "../api/errors";
import type { SignInDomain } from "../api/types";
import { Section } from "../security/Section";
import { CopyText } from "../shared/CopyText";
import { notifyDone, tell } from "../shared/confirm";
import { useAddDomain, useConfirmDomain, useRemoveDomain } from "./queries";

export function DomainsSection({ domains }: { domains: SignInDomain[] }) {
  return (
    <Section
      title="E-mail domains"
      text="The provider is believed for addresses of these alone. Once you have shown that a domain is yours, new people may join by signing in, and find your provider by their address."
    >
      <Stack>
        {domains.map((domain) => (
          <DomainRow key={domain.id} domain={domain} />
        ))}
        <AddDomain />
      </Stack>
    </Section>
  );
}

function DomainRow({ domain }: { domain: SignInDomain }) {
  const remove = useRemoveDomain(domain.id);
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Group gap="xs">
          <Text fw={600}>{domain.name}</Text>
          <Badge variant="default" tt="none">
            {domain.confirmed_at ? "confirmed" : "not confirmed"}
          </Badge>
        </Group>
        <Button
          size="compact-sm"
          variant="subtle"
          color="red"
          loading={remove.isPending}
          aria-label={`Remove ${domain.name}`}
          onClick={() =>
            tell(remove.mutateAsync(undefined), `${domain.name} is removed.`, "Nothing was removed")
          }
        >
          Remove
        </Button>
      </Group>
      {!domain.confirmed_at && <Proof domain={domain} />}
    </Stack>
  );
}

function Proof({ domain }: { domain: SignInDomain }) {
  const confirm = useConfirmDomain(domain.id);
  return (
    <Stack gap={4}>
      <Text size="sm">{`Let ${domain.proof_url} answer with this line:`}</Text>
      <CopyText value={domain.proof_line} label="Copy the line" />
      {confirm.isError && (
        <Text size="sm" c="red" role="alert">
          {messageOf(confirm.error)}
        </Text>
      )}
      <Group>
        <Button
          size="xs"
          variant="default"
          loading={confirm.isPending}
          aria-label={`Look for the line of ${domain.name}`}
          onClick={() =>
            confirm.mutate(undefined, {
              onSuccess: () => notifyDone(`${domain.name} is confirmed.`),
            })
          }
        >
          Look for it
        </Button>
      </Group>
    </Stack>
  );
}

function AddDomain() {
  const add = useAddDomain();
  const form = useForm({
    initialValues: { name: "" },
    validate: { name: (value) => (value.trim() ? null : "Enter a domain") },
  });
  return (
    <form
      onSubmit={form.onSubmit(({ name }) => add.mutate(name, { onSuccess: () => form.reset() }))}
      noValidate
    >
      <Group align="flex-start">
        <TextInput
          aria-label="Domain"
          placeholder="example.com"
          {...form.getInputProps("name")}
          error={form.errors.name ?? (add.isError ? messageOf(add.error) : null)}
        />
        <Button type="submit" variant="default" loading={add.isPending}>
          Add domain
        </Button>
      </Group>
    </form>
  );
}
