import { Button, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconUserPlus } from "@tabler/icons-react";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { InvitationTable } from "./InvitationTable";
import { InviteModal } from "./InviteModal";
import { MemberTable } from "./MemberTable";
import { useInvitations, useMembers } from "./queries";
import { RequireSecondFactor } from "./RequireSecondFactor";

export function Component() {
  const [inviting, invite] = useDisclosure(false);
  const button = (
    <Button leftSection={<IconUserPlus size={16} aria-hidden />} onClick={invite.open}>
      Invite somebody
    </Button>
  );
  return (
    <>
      <PageHeader title="Members" action={button}>
        Who belongs to this tenant, and what each may do. A member who is removed is refused at
        once; the keys they issued stay.
      </PageHeader>
      <People />
      <InviteModal opened={inviting} onClose={invite.close} />
    </>
  );
}

function People() {
  const members = useMembers();
  const invitations = useInvitations();
  if (members.isPending) return <LoadingCards height={48} />;
  if (members.isError) {
    return (
      <ErrorState
        error={members.error}
        what="The members could not be read"
        onRetry={() => members.refetch()}
      />
    );
  }
  return (
    <Stack gap="lg">
      <RequireSecondFactor />
      <MemberTable members={members.data} />
      {invitations.data && invitations.data.length > 0 && (
        <InvitationTable invitations={invitations.data} />
      )}
    </Stack>
  );
}
