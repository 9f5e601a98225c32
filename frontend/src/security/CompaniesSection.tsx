import { Button, Group, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Company } from "../api/types";
import { notifyDone } from "../shared/confirm";
import { formatDate } from "../shared/time";
import { useCompanies, useConnect, useDisconnect } from "./companies";
import { PasswordPrompt } from "./PasswordPrompt";
import { Section } from "./Section";

/** Only there for people of tenants that sign their people in themselves. */
export function CompaniesSection() {
  const companies = useCompanies();
  if (!companies.data?.length) return null;
  return (
    <Section
      title="Your company"
      text="Connected, your company's own sign-in opens this account too, and shows that company's tenant alone."
    >
      <Stack gap="xs">
        {companies.data.map((company) => (
          <CompanyRow key={company.tenant.id} company={company} />
        ))}
      </Stack>
    </Section>
  );
}

function CompanyRow({ company }: { company: Company }) {
  const { name } = company.tenant;
  const since = company.linked_at
    ? `connected ${formatDate(company.linked_at)}`
    : "not connected yet";
  return (
    <Group justify="space-between">
      <Text size="sm">{`${name} (${company.issuer}): ${since}`}</Text>
      {company.link_id ? (
        <DisconnectButton name={name} linkId={company.link_id} />
      ) : (
        <ConnectButton name={name} tenantId={company.tenant.id} />
      )}
    </Group>
  );
}

function ConnectButton({ name, tenantId }: { name: string; tenantId: string }) {
  const [opened, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button variant="default" onClick={open}>{`Connect ${name}`}</Button>
      <PasswordPrompt
        title={`Connect ${name}`}
        text="You go to your company's sign-in page, and come back here."
        submit="Go there"
        opened={opened}
        onClose={close}
        change={useConnect(tenantId)}
        onDone={() => undefined}
      />
    </>
  );
}

function DisconnectButton({ name, linkId }: { name: string; linkId: string }) {
  const [opened, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button variant="subtle" color="red" onClick={open}>{`Disconnect ${name}`}</Button>
      <PasswordPrompt
        title={`Disconnect ${name}`}
        submit="Disconnect"
        opened={opened}
        onClose={close}
        change={useDisconnect(linkId)}
        onDone={() => {
          close();
          notifyDone(`${name}'s sign-in opens your account no more.`);
        }}
      />
    </>
  );
}
