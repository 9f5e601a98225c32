import { Button, Card, Stack, Table, Title, VisuallyHidden } from "@mantine/core";
import type { Invitation } from "../api/types";
import { notifyDone, notifyFailed } from "../shared/confirm";
import { formatDateTime } from "../shared/time";
import { useWithdraw } from "./queries";

export function InvitationTable({ invitations }: { invitations: Invitation[] }) {
  return (
    <Stack gap="xs">
      <Title order={2}>Invited</Title>
      <Card withBorder padding={0}>
        <Table.ScrollContainer minWidth={640}>
          <Table verticalSpacing="sm" horizontalSpacing="md" fz="sm">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Address</Table.Th>
                <Table.Th>Role</Table.Th>
                <Table.Th>Invited by</Table.Th>
                <Table.Th>Good until</Table.Th>
                <Table.Th>
                  <VisuallyHidden>Actions</VisuallyHidden>
                </Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {invitations.map((invitation) => (
                <Table.Tr key={invitation.id}>
                  <Table.Td>{invitation.email}</Table.Td>
                  <Table.Td>{invitation.role}</Table.Td>
                  <Table.Td>{invitation.invited_by}</Table.Td>
                  <Table.Td>{formatDateTime(invitation.expires_at)}</Table.Td>
                  <Table.Td ta="right">
                    <WithdrawButton invitation={invitation} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      </Card>
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
        withdraw.mutate(invitation.id, {
          onSuccess: () => notifyDone(`The link of ${invitation.email} opens nothing any more.`),
          onError: (error) => notifyFailed("The invitation was not withdrawn", error),
        })
      }
    >
      Withdraw
    </Button>
  );
}
