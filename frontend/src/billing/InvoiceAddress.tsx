import { Button, Card, DataList, Group, Textarea, TextInput, Title } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useDisclosure } from "@mantine/hooks";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { notifyDone } from "../shared/confirm";
import { ErrorState } from "../shared/ErrorState";
import { FormModal } from "../shared/FormModal";
import { LoadingCards } from "../shared/LoadingCards";
import { formatRate, plural } from "../shared/numbers";
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
      <DataList size="sm" labelWidth="160px">
        {rowsOf(profile.data, membership?.tenant.name ?? "").map(([label, value]) => (
          <DataList.Item key={label}>
            <DataList.ItemLabel>{label}</DataList.ItemLabel>
            <DataList.ItemValue style={{ whiteSpace: "pre-line" }}>{value}</DataList.ItemValue>
          </DataList.Item>
        ))}
      </DataList>
      {changing && <AddressModal profile={profile.data} onClose={change.close} />}
    </Card>
  );
}

function rowsOf(profile: Profile, tenant: string): [string, string][] {
  return [
    ["Name", profile.name || tenant],
    ["Address", profile.address || "none"],
    ["Tax number", profile.tax_id || "none"],
    ["Tax", `${profile.tax_name || "Tax"} ${formatRate(profile.tax_rate)}`],
    ["Due after", plural(profile.payment_days, "day")],
    ["Time zone", `${profile.time_zone}: periods begin at its midnight`],
  ];
}

function AddressModal({ profile, onClose }: { profile: Profile; onClose: () => void }) {
  const change = useChangeBillingProfile();
  const { name, address, tax_id, time_zone } = profile;
  const form = useForm({
    initialValues: { name, address, tax_id, time_zone },
    validate: {
      time_zone: (value) => (value.trim() ? null : "Name a zone, such as Europe/Berlin"),
    },
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
      <TextInput label="Name" maxLength={200} {...form.getInputProps("name")} />
      <Textarea label="Address" autosize maxLength={500} {...form.getInputProps("address")} />
      <TextInput label="Tax number" maxLength={50} {...form.getInputProps("tax_id")} />
      <TextInput
        label="Time zone"
        description="Periods begin at its midnight"
        {...form.getInputProps("time_zone")}
      />
    </FormModal>
  );
}
