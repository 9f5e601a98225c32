import { Badge, Button, Group, Select, Table, Text } from "@mantine/core";
import type { Member, OwnRole, Role } from "../api/types";
import { useTenant } from "../session/context";
import { confirmDanger, tell } from "../shared/confirm";
import { ACTIONS, DataTable } from "../shared/DataTable";
import { formatDate } from "../shared/time";
import { useChangeRole, useRemoveMember } from "./queries";
import { grantable, mayChange, ROLES } from "./roles";

const COLUMNS = ["Person", "Role", { label: "Member since", wide: true }, ACTIONS];

export function MemberTable({ members }: { members: Member[] }) {
  return (
    <DataTable columns={COLUMNS} minWidth={640}>
      {members.map((member) => (
        <MemberRow key={member.id} member={member} />
      ))}
    </DataTable>
  );
}

function MemberRow({ member }: { member: Member }) {
  const { session, membership } = useTenant();
  const isSelf = member.user_id === session.user.id;
  const may = membership !== null && mayChange(membership.role, member.role);
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap="xs">
          <Text size="sm" fw={600}>
            {member.email}
          </Text>
          {isSelf && (
            <Badge variant="default" tt="none" size="sm">
              you
            </Badge>
          )}
        </Group>
      </Table.Td>
      <Table.Td>
        {may && membership ? (
          <RoleSelect member={member} own={membership.role} />
        ) : (
          ROLES.find(({ value }) => value === member.role)?.label
        )}
      </Table.Td>
      <Table.Td>{formatDate(member.created_at)}</Table.Td>
      <Table.Td ta="right">{may && !isSelf && <RemoveButton member={member} />}</Table.Td>
    </Table.Tr>
  );
}

function RoleSelect({ member, own }: { member: Member; own: OwnRole }) {
  const change = useChangeRole();
  const choose = (role: Role) =>
    tell(
      change.mutateAsync({ id: member.id, role }),
      `${member.email} is ${role} now.`,
      "The role was not changed",
    );
  return (
    <Select
      aria-label={`Role of ${member.email}`}
      size="xs"
      w={140}
      data={grantable(own).map(({ value, label }) => ({ value, label }))}
      value={member.role}
      onChange={(role) => role && role !== member.role && choose(role as Role)}
      allowDeselect={false}
      disabled={change.isPending}
    />
  );
}

function RemoveButton({ member }: { member: Member }) {
  const remove = useRemoveMember();
  const confirm = () =>
    confirmDanger({
      title: `Remove ${member.email}?`,
      text: "They are refused at once. Keys that they issued stay: revoke those that should not.",
      confirm: "Remove from the tenant",
      onConfirm: () =>
        tell(
          remove.mutateAsync(member.id),
          `${member.email} is removed.`,
          `${member.email} was not removed`,
        ),
    });
  return (
    <Button
      size="compact-sm"
      variant="subtle"
      color="red"
      onClick={confirm}
      loading={remove.isPending}
      aria-label={`Remove ${member.email}`}
    >
      Remove
    </Button>
  );
}
