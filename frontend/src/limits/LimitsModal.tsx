import { Modal, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifyDone } from "../shared/confirm";
import { ErrorState } from "../shared/ErrorState";
import { FormModal } from "../shared/FormModal";
import { LoadingCards } from "../shared/LoadingCards";
import { formatMoney } from "../shared/money";
import { AccountFields } from "./AccountFields";
import type { LimitsNow } from "./calls";
import { changesOf, LIMIT_PROBLEMS, type LimitValues, valuesOf } from "./form";
import { LimitFields } from "./LimitFields";
import { useLimitsOf, useSetLimits, type Whose } from "./queries";

interface Props {
  whose: Whose;
  onClose: () => void;
}

/** The limits of an account, a member, a key or an adapter. */
export function LimitsModal({ whose, onClose }: Props) {
  const limits = useLimitsOf(whose);
  if (limits.data) return <LimitsForm whose={whose} onClose={onClose} now={limits.data} />;
  return (
    <Modal opened onClose={onClose} title={`Limits of ${whose.label}`}>
      {limits.isError ? (
        <ErrorState
          error={limits.error}
          what="The limits could not be read"
          onRetry={() => limits.refetch()}
        />
      ) : (
        <LoadingCards height={36} />
      )}
    </Modal>
  );
}

function LimitsForm({ whose, now, onClose }: Props & { now: LimitsNow }) {
  const save = useSetLimits(whose);
  const form = useForm({ initialValues: valuesOf(now), validate: LIMIT_PROBLEMS });
  const field = (name: keyof LimitValues) => form.getInputProps(name);
  const submit = (values: LimitValues) =>
    save.mutate(changesOf(values, whose.level), {
      onSuccess: () => {
        notifyDone(`The limits of ${whose.label} are saved.`);
        onClose();
      },
    });
  return (
    <FormModal
      title={`Limits of ${whose.label}`}
      opened
      onClose={onClose}
      onSubmit={form.onSubmit(submit)}
      submit="Save"
      pending={save.isPending}
      error={save.error}
    >
      <Text size="sm" c="dimmed">
        {whatHolds(whose.level)}
        {` Spent in the budget's period: ${formatMoney(now.spent)}; held by requests that run: ${formatMoney(now.held)}.`}
      </Text>
      <LimitFields field={field} />
      {whose.level === "tenant" && <AccountFields field={field} />}
    </FormModal>
  );
}

function whatHolds(level: Whose["level"]): string {
  if (level === "tenant") return "An empty field means no limit.";
  return "An empty field means no limit of its own. Those of the account hold beside these: the tighter one decides.";
}
