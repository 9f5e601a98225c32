import { Button, Card, Group, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Tenant } from "../api/types";
import { ProfileFacts } from "../billing/ProfileFacts";
import type { Profile } from "../billing/profile";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatUtcDate } from "../shared/time";
import { ProfileModal } from "./ProfileModal";
import { useProfile } from "./queries";

/** Whom invoices name, taxes, terms of payment, and when periods begin. */
export function ProfileCard({ tenant }: { tenant: Tenant }) {
  const [changing, change] = useDisclosure(false);
  const profile = useProfile(tenant.id);
  if (profile.isPending) return <LoadingCards count={1} height={180} />;
  if (profile.isError) {
    return (
      <ErrorState
        error={profile.error}
        what="How it is billed could not be read"
        onRetry={() => profile.refetch()}
      />
    );
  }
  return (
    <Card withBorder component="section" aria-label="How it is billed">
      <Group justify="space-between" mb="sm">
        <Title order={2}>How it is billed</Title>
        <Button size="xs" variant="default" onClick={change.open}>
          Change
        </Button>
      </Group>
      <ProfileFacts
        profile={profile.data}
        nameLabel="Name on invoices"
        tenant={tenant.name}
        begins={["Periods begin", whenPeriodsBegin(profile.data)]}
      />
      {changing && <ProfileModal tenant={tenant} profile={profile.data} onClose={change.close} />}
    </Card>
  );
}

function whenPeriodsBegin({ anchor, time_zone }: Profile): string {
  return `on the day of ${formatUtcDate(anchor)}, at midnight in ${time_zone}`;
}
