import { Button, Stack, Table, Title } from "@mantine/core";
import type { Invitation } from "../api/types";
import { tell } from "../shared/confirm";
import { ACTIONS, DataTable } from "../shared/DataTable";
import { formatDateTime } from "../shared/time";
import { useWithdraw } from "./queries";
import { ROLES } from "./roles";

const COLUMNS = [
  "Address",
  "Role",
  { label: "Invited by", wide: true },
  { label: "Good until", wide: true },
  ACTIONS,
];

export function InvitationTable({ invitations }: { invitations: Invitation[] }) {
  return (
    <Stack gap="xs">
      <Title order={2}>Invited</Title>
      <DataTable columns={COLUMNS} minWidth={640}>
        {invitations.map((invitation) => (
          <Table.Tr key={invitation.id}>
            <Table.Td>{invitation.email}</Table.Td>
            <Table.Td>{ROLES.find(({ value }) => value === invitation.role)?.label}</Table.Td>
            <Table.Td>{invitation.invited_by}</Table.Td>
            <Table.Td>{formatDateTime(invitation.expires_at)}</Table.Td>
            <Table.Td ta="right">
              <WithdrawButton invitation={invitation} />
            </Table.Td>
          </Table.Tr>
        ))}
      </DataTable>
    </Stack>
  );
}

function WithdrawButton({ invitation }: { invitation: Invitation }) {
  const withdraw = useWithdraw();
  return (
    <Button
      size="compact-sm"
      variant="subtle"
      color="red"
      loading={withdraw.isPending}
      aria-label={`Withdraw the invitation of ${invitation.email}`}
      onClick={() =>
        tell(
          withdraw.mutateAsync(invitation.id),
          `The link of ${invitation.email} opens nothing any more.`,
          "The invitation was not withdrawn",
        )
      }
    >
      Withdraw
    </Button>
  );
}
