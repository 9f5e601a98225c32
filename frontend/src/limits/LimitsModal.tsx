import { Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifyDone } from "../shared/confirm";
import { FormModal } from "../shared/FormModal";
import { changesOf, LIMIT_PROBLEMS, type Settable, valuesOf } from "./form";
import { LimitFields } from "./LimitFields";
import { useSetLimits, type Whose } from "./queries";

interface Props {
  whose: Whose;
  now: Settable;
  onClose: () => void;
}

/** Limits of a member, a key or an adapter. */
export function LimitsModal({ whose, now, onClose }: Props) {
  const save = useSetLimits(whose);
  const form = useForm({ initialValues: valuesOf(now), validate: LIMIT_PROBLEMS });
  const submit = (values: typeof form.values) =>
    save.mutate(changesOf(values), {
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
        An empty field means no limit of its own. Those of the account hold beside these: the
        tighter one decides.
      </Text>
      <LimitFields field={(name) => form.getInputProps(name)} />
    </FormModal>
  );
}
