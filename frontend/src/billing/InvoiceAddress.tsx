import { Button, Card, Group, Title } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useDisclosure } from "@mantine/hooks";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { notifyDone } from "../shared/confirm";
import { ErrorState } from "../shared/ErrorState";
import { FormModal } from "../shared/FormModal";
import { LoadingCards } from "../shared/LoadingCards";
import { ProfileFacts } from "./ProfileFacts";
import { PartyFields, ZoneField, zoneProblem } from "./ProfileFields";
import { type Profile, useBillingProfile, useChangeBillingProfile } from "./profile";

/** Whom invoices name, and when periods begin. Taxes and terms are the operator's to set. */
export function InvoiceAddress() {
  const { membership } = useTenant();
  const [changing, change] = useDisclosure(false);
  const profile = useBillingProfile();
  if (profile.isPending) return <LoadingCards count={1} height={160} />;
  if (profile.isError) {
    return (
      <ErrorState
        error={profile.error}
        what="Whom invoices name could not be read"
        onRetry={() => profile.refetch()}
      />
    );
  }
  return (
    <Card withBorder component="section" aria-label="On your invoices">
      <Group justify="space-between" mb="sm">
        <Title order={2}>On your invoices</Title>
        {membership && roleCan(membership.role, "billing:write") && (
          <Button size="xs" variant="default" onClick={change.open}>
            Change
          </Button>
        )}
      </Group>
      <ProfileFacts
        profile={profile.data}
        nameLabel="Name"
        tenant={membership?.tenant.name ?? ""}
        begins={["Time zone", `${profile.data.time_zone}: periods begin at its midnight`]}
      />
      {changing && <AddressModal profile={profile.data} onClose={change.close} />}
    </Card>
  );
}

function AddressModal({ profile, onClose }: { profile: Profile; onClose: () => void }) {
  const change = useChangeBillingProfile();
  const { name, address, tax_id, time_zone } = profile;
  const form = useForm({
    initialValues: { name, address, tax_id, time_zone },
    validate: { time_zone: zoneProblem },
  });
  const submit = (values: typeof form.values) =>
    change.mutate(values, {
      onSuccess: () => {
        notifyDone("Your next invoices will say so.");
        onClose();
      },
    });
  return (
    <FormModal
      title="On your invoices"
      opened
      onClose={onClose}
      onSubmit={form.onSubmit(submit)}
      submit="Save"
      pending={change.isPending}
      error={change.error}
    >
      <PartyFields nameLabel="Name" field={form.getInputProps} />
      <ZoneField field={form.getInputProps} />
    </FormModal>
  );
}
