import { Alert, Button, Checkbox, Select, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import dayjs from "dayjs";
import { messageOf } from "../api/errors";
import type { Scope } from "../api/types";
import { AmountInput } from "../shared/AmountInput";
import { optionalAmountProblem } from "../shared/decimalInput";
import type { NewKey } from "./queries";
import { ReachFields } from "./ReachFields";
import { reachBody, reachOf } from "./reach";

const SCOPES = [
  { value: "inference", label: "inference", description: "call models: /v1/chat/completions" },
  { value: "manage", label: "manage", description: "upload adapters, issue and revoke keys" },
  { value: "usage:read", label: "usage:read", description: "read usage and balance" },
];
const FIRST_SCOPES: Scope[] = ["inference"];
const LIFETIMES = [
  { value: "", label: "Never" },
  { value: "7", label: "In 7 days" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
];

const NOT_HELD = reachOf({ allowed_models: null, allowed_networks: null });

interface Props {
  onSubmit: (key: NewKey) => void;
  pending: boolean;
  error: Error | null;
}

export function IssueKeyForm({ onSubmit, pending, error }: Props) {
  const form = useForm({
    initialValues: { name: "", scopes: FIRST_SCOPES, days: "", budget: "", ...NOT_HELD },
    validate: {
      name: (value) => (value.trim() ? null : "Name the program that will use the key"),
      scopes: (value) => (value.length > 0 ? null : "Choose at least one scope"),
      budget: optionalAmountProblem,
    },
  });
  const submit = (values: typeof form.values) =>
    onSubmit({
      name: values.name.trim(),
      scopes: values.scopes,
      ...reachBody(values),
      monthly_budget: values.budget.trim() || null,
      expires_at: values.days ? dayjs().add(Number(values.days), "day").toISOString() : null,
    });
  return (
    <form onSubmit={form.onSubmit(submit)}>
      <Stack>
        {error && (
          <Alert color="red" role="alert">
            {messageOf(error)}
          </Alert>
        )}
        <TextInput
          label="Name"
          placeholder="support-bot in production"
          data-autofocus
          maxLength={100}
          {...form.getInputProps("name")}
        />
        <Checkbox.Group label="Scopes" {...form.getInputProps("scopes")}>
          <Stack gap="xs" mt={6}>
            {SCOPES.map((scope) => (
              <Checkbox key={scope.value} {...scope} />
            ))}
          </Stack>
        </Checkbox.Group>
        <Select
          label="Expires"
          data={LIFETIMES}
          allowDeselect={false}
          {...form.getInputProps("days")}
        />
        <AmountInput
          label="Monthly budget"
          description="Requests beyond it are refused. Leave it empty for none of its own."
          {...form.getInputProps("budget")}
        />
        <ReachFields
          models={form.getInputProps("models")}
          networks={form.getInputProps("networks")}
        />
        <Button type="submit" loading={pending}>
          Issue the key
        </Button>
      </Stack>
    </form>
  );
}
