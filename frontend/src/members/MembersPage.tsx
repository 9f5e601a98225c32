import { Button, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconUserPlus } from "@tabler/icons-react";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { SearchField } from "../shared/SearchField";
import { useUrlState } from "../shared/useUrlState";
import { InvitationTable } from "./InvitationTable";
import { InviteModal } from "./InviteModal";
import { MemberTable } from "./MemberTable";
import { useInvitations, useMembers } from "./queries";
import { RequireSecondFactor } from "./RequireSecondFactor";

const NAMES = ["q"] as const;

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
  const [{ q }, change] = useUrlState(NAMES);
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
  const isAsked = ({ email }: { email: string }) => email.toLowerCase().includes(q.toLowerCase());
  const found = members.data.filter(isAsked);
  const invited = (invitations.data ?? []).filter(isAsked);
  return (
    <Stack gap="lg">
      <RequireSecondFactor />
      <SearchField label="Search by address" value={q} onSearch={(text) => change({ q: text })} />
      {found.length > 0 && <MemberTable members={found} />}
      {invited.length > 0 && <InvitationTable invitations={invited} />}
      {found.length + invited.length === 0 && (
        <Text c="dimmed">Nobody of this address belongs to the tenant or is invited.</Text>
      )}
    </Stack>
  );
}
