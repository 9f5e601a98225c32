import { MultiSelect, TagsInput } from "@mantine/core";
import type { GetInputPropsReturnType } from "@mantine/form";
import { useAdapters } from "../adapters/queries";
import { useTenant } from "../session/context";

interface Props {
  models: GetInputPropsReturnType;
  networks: GetInputPropsReturnType;
}

/** What a key is held to. Nothing chosen = not held. */
export function ReachFields({ models, networks }: Props) {
  const { session } = useTenant();
  const adapters = useAdapters();
  const names = (adapters.data ?? []).map((adapter) => adapter.name);
  return (
    <>
      <MultiSelect
        label="Models"
        description="Only these may be called. Leave it empty for all, also those to come."
        data={[session.base_model.name, ...names]}
        searchable
        clearable
        {...models}
      />
      <TagsInput
        label="Networks"
        description="The key works only from these, such as 203.0.113.0/24. Leave it empty for anywhere."
        splitChars={[",", " "]}
        acceptValueOnBlur
        clearable
        {...networks}
      />
    </>
  );
}
