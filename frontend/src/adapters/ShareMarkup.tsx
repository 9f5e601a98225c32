import { Button, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useDisclosure } from "@mantine/hooks";
import type { Adapter, AdapterGrant } from "../api/types";
import { AmountInput } from "../shared/AmountInput";
import { notifyDone } from "../shared/confirm";
import { amountProblem } from "../shared/decimalInput";
import { FormModal } from "../shared/FormModal";
import { chartValue, formatMoney } from "../shared/money";
import { formatShare } from "../shared/numbers";
import { type Markup, useMarkups, useSetMarkup } from "./markups";

interface Props {
  adapter: Adapter;
  grant: AdapterGrant;
}

/** What a tenant pays on top for the adapter, and what of it is the owner's: a button that changes it. */
export function ShareMarkup({ adapter, grant }: Props) {
  const [setting, { open, close }] = useDisclosure(false);
  const markups = useMarkups();
  const markup = markups.data?.data.find(
    ({ adapter_id: id, grantee }) => id === adapter.id && grantee === grant.tenant,
  );
  if (markups.isPending) return null;
  if (markups.isError) {
    return (
      <Button size="compact-xs" variant="default" onClick={() => markups.refetch()}>
        Not read: try again
      </Button>
    );
  }
  return (
    <>
      <Button
        size="compact-xs"
        variant="default"
        onClick={open}
        aria-label={`Set what ${grant.tenant} pays on top`}
      >
        {markup ? formatMoney(markup.per_million) : "nothing"}
      </Button>
      {markup && <Share markup={markup} />}
      {setting && (
        <MarkupForm
          adapter={adapter}
          grant={grant}
          current={markup?.per_million ?? ""}
          most={markups.data.max_per_million}
          ownerPercent={markups.data.owner_percent}
          onClose={close}
        />
      )}
    </>
  );
}

function Share({ markup }: { markup: Markup }) {
  return (
    <Text size="xs" c="dimmed">
      {`you get ${formatMoney(markup.earned_per_million ?? "0")}; ${formatMoney(markup.earned ?? "0")} since your last statement`}
    </Text>
  );
}

interface FormProps extends Props {
  current: string;
  most: string;
  ownerPercent: number;
  onClose: () => void;
}

function MarkupForm({ adapter, grant, current, most, ownerPercent, onClose }: FormProps) {
  const set = useSetMarkup(adapter, grant);
  const form = useForm({
    initialValues: { amount: current },
    validate: { amount: (value) => problemOf(value.trim(), most) },
  });
  const submit = ({ amount }: typeof form.values) =>
    set.mutate(amount.trim(), {
      onSuccess: ({ markup }) => {
        notifyDone(
          markup
            ? `${grant.tenant} pays ${formatMoney(markup.per_million)} more per 1M tokens from now on.`
            : `${grant.tenant} pays nothing on top from now on.`,
        );
        onClose();
      },
    });
  return (
    <FormModal
      title={`What ${grant.tenant} pays on top`}
      opened
      onClose={onClose}
      onSubmit={form.onSubmit(submit)}
      submit="Set it"
      pending={set.isPending}
      error={set.error}
    >
      <AmountInput
        label="Per 1M tokens"
        description={`Of any kind, for requests from now on: up to ${formatMoney(most)}, 0 for nothing. You get ${formatShare(ownerPercent / 100)} of it as credit when your period is closed; the platform keeps the rest.`}
        data-autofocus
        {...form.getInputProps("amount")}
      />
    </FormModal>
  );
}

function problemOf(value: string, most: string): string | null {
  const problem = amountProblem(value);
  if (problem) return problem;
  return chartValue(value) > chartValue(most)
    ? `This platform allows ${formatMoney(most)} at most`
    : null;
}
