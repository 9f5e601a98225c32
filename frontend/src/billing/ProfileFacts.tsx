import { DataList } from "@mantine/core";
import { formatRate, plural } from "../shared/numbers";
import type { Profile } from "./profile";

type Fact = [label: string, value: string];

interface Props {
  profile: Profile;
  nameLabel: string;
  /** What invoices say where the profile has no name. */
  tenant: string;
  /** When periods begin. */
  begins: Fact;
}

/** Whom invoices name, taxes, terms of payment, and when periods begin. */
export function ProfileFacts({ profile, nameLabel, tenant, begins }: Props) {
  const facts: Fact[] = [
    [nameLabel, profile.name || tenant],
    ["Address", profile.address || "none"],
    ["Tax number", profile.tax_id || "none"],
    ["Tax", `${profile.tax_name || "Tax"} ${formatRate(profile.tax_rate)}`],
    ["Due after", plural(profile.payment_days, "day")],
    begins,
  ];
  return (
    <DataList size="sm" labelWidth="160px">
      {facts.map(([label, value]) => (
        <DataList.Item key={label}>
          <DataList.ItemLabel>{label}</DataList.ItemLabel>
          <DataList.ItemValue style={{ whiteSpace: "pre-line" }}>{value}</DataList.ItemValue>
        </DataList.Item>
      ))}
    </DataList>
  );
}
