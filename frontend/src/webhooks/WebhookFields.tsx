import { MultiSelect, TextInput } from "@mantine/core";
import type { GetInputPropsReturnType } from "@mantine/form";
import type { AlertKind, Webhook } from "../api/types";
import { KINDS } from "./kinds";

export interface WebhookValues {
  url: string;
  kinds: AlertKind[];
}

interface Props {
  url: GetInputPropsReturnType;
  kinds: GetInputPropsReturnType;
}

export function urlProblem(value: string): string | null {
  return URL.canParse(value.trim())
    ? null
    : "Use a whole address, such as https://example.com/hook";
}

export function valuesOf(webhook: Webhook): WebhookValues {
  const known = KINDS.map(({ value }) => value);
  return { url: webhook.url, kinds: known.filter((kind) => webhook.kinds.includes(kind)) };
}

export function WebhookFields({ url, kinds }: Props) {
  return (
    <>
      <TextInput
        label="Address"
        placeholder="https://example.com/veneer"
        description="A public https address that answers with 2xx"
        type="url"
        data-autofocus
        maxLength={2000}
        {...url}
      />
      <MultiSelect
        label="Tell it when"
        description="Leave it empty for everything, also what is to come."
        data={KINDS}
        clearable
        {...kinds}
      />
    </>
  );
}
