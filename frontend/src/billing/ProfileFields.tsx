import { Textarea, TextInput } from "@mantine/core";

type Field<Name> = (name: Name) => object;

interface Props {
  nameLabel: string;
  field: Field<"name" | "address" | "tax_id">;
}

/** Whom invoices name. */
export function PartyFields({ nameLabel, field }: Props) {
  return (
    <>
      <TextInput label={nameLabel} maxLength={200} {...field("name")} />
      <Textarea label="Address" autosize maxLength={500} {...field("address")} />
      <TextInput label="Tax number" maxLength={50} {...field("tax_id")} />
    </>
  );
}

export function ZoneField({ field }: { field: Field<"time_zone"> }) {
  return (
    <TextInput
      label="Time zone"
      description="Periods begin at its midnight"
      {...field("time_zone")}
    />
  );
}

export function zoneProblem(zone: string): string | null {
  return zone.trim() ? null : "Name a zone, such as Europe/Berlin";
}
