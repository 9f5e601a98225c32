import { JsonInput, Select } from "@mantine/core";
import { type Form, type Settings, schemaProblem } from "./settings";

const FORMS = [
  { value: "text", label: "Any text" },
  { value: "json", label: "JSON" },
  { value: "schema", label: "JSON of a schema" },
];
const EXAMPLE = `{
  "type": "object",
  "properties": { "city": { "type": "string" } },
  "required": ["city"]
}`;

interface Props {
  settings: Settings;
  onChange: (changes: Partial<Settings>) => void;
}

/** What form the answer must have. */
export function FormField({ settings, onChange }: Props) {
  const choose = (form: Form) =>
    onChange(form === "schema" && settings.schema === "" ? { form, schema: EXAMPLE } : { form });
  return (
    <>
      <Select
        label="The answer is"
        data={FORMS}
        value={settings.form}
        onChange={(form) => form && choose(form as Form)}
        allowDeselect={false}
      />
      {settings.form === "schema" && (
        <JsonInput
          label="JSON schema"
          autosize
          minRows={4}
          maxRows={16}
          formatOnBlur
          value={settings.schema}
          error={schemaProblem(settings.schema)}
          onChange={(schema) => onChange({ schema })}
        />
      )}
    </>
  );
}
