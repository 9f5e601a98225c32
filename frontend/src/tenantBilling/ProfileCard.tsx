import { Button, Card, DataList, Group, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Tenant } from "../api/types";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatRate, plural } from "../shared/numbers";
import { formatUtcDate } from "../shared/time";
import { ProfileModal } from "./ProfileModal";
import { type Profile, useProfile } from "./queries";

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
      <DataList size="sm" labelWidth="160px">
        {rowsOf(profile.data, tenant).map(([label, value]) => (
          <DataList.Item key={label}>
            <DataList.ItemLabel>{label}</DataList.ItemLabel>
            <DataList.ItemValue style={{ whiteSpace: "pre-line" }}>{value}</DataList.ItemValue>
          </DataList.Item>
        ))}
      </DataList>
      {changing && <ProfileModal tenant={tenant} profile={profile.data} onClose={change.close} />}
    </Card>
  );
}

function rowsOf(profile: Profile, tenant: Tenant): [string, string][] {
  return [
    ["Name on invoices", profile.name || tenant.name],
    ["Address", profile.address || "none"],
    ["Tax number", profile.tax_id || "none"],
    ["Tax", `${profile.tax_name || "Tax"} ${formatRate(profile.tax_rate)}`],
    ["Due after", plural(profile.payment_days, "day")],
    [
      "Periods begin",
      `on the day of ${formatUtcDate(profile.anchor)}, at midnight in ${profile.time_zone}`,
    ],
  ];
}
