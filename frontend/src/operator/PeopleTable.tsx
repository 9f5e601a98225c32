import { Badge, Button, Group, Table, Text } from "@mantine/core";
import type { Person } from "../api/types";
import { useWorkspace } from "../session/context";
import { confirmDanger, tell } from "../shared/confirm";
import { ACTIONS, DataTable } from "../shared/DataTable";
import { formatDate } from "../shared/time";
import { ForgetFactorsButton } from "./ForgetFactorsButton";
import { useSetActive } from "./people";
import { ResetLinkButton } from "./ResetLinkButton";

const COLUMNS = [
  "Person",
  { label: "Tenants", wide: true },
  { label: "Since", wide: true },
  ACTIONS,
];

export function PeopleTable({ people }: { people: Person[] }) {
  return (
    <DataTable columns={COLUMNS} minWidth={700}>
      {people.map((person) => (
        <PersonRow key={person.id} person={person} />
      ))}
    </DataTable>
  );
}

function PersonRow({ person }: { person: Person }) {
  const { session } = useWorkspace();
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap="xs">
          <Text size="sm" fw={600}>
            {person.email}
          </Text>
          {person.is_operator && <Tag>operator</Tag>}
          {!person.is_active && <Tag>shut out</Tag>}
        </Group>
      </Table.Td>
      <Table.Td>{person.tenants.join(", ")}</Table.Td>
      <Table.Td>{formatDate(person.created_at)}</Table.Td>
      <Table.Td>
        <Group gap="xs" justify="flex-end">
          {person.is_active && <ResetLinkButton person={person} />}
          {person.is_active && <ForgetFactorsButton person={person} />}
          {person.id !== session.user.id && <ActiveButton person={person} />}
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

function Tag({ children }: { children: string }) {
  return (
    <Badge variant="default" tt="none" size="sm">
      {children}
    </Badge>
  );
}

function ActiveButton({ person }: { person: Person }) {
  const set = useSetActive();
  const change = (is_active: boolean) =>
    tell(
      set.mutateAsync({ id: person.id, is_active }),
      `${person.email} ${is_active ? "may sign in again" : "is shut out"}.`,
      `${person.email} was not changed`,
    );
  const confirm = () =>
    confirmDanger({
      title: `Shut ${person.email} out?`,
      text: "Every session of theirs ends at once, and they cannot sign in. Keys that they issued stay: they belong to the tenant.",
      confirm: "Shut out",
      onConfirm: () => change(false),
    });
  return (
    <Button
      size="compact-sm"
      variant="default"
      loading={set.isPending}
      aria-label={`${person.is_active ? "Shut out" : "Let in"} ${person.email}`}
      onClick={person.is_active ? confirm : () => change(true)}
    >
      {person.is_active ? "Shut out" : "Let in"}
    </Button>
  );
}
