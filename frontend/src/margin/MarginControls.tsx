import { Group, Select, Text } from "@mantine/core";
import { useTenants } from "../operator/queries";
import { GROUPINGS } from "./queries";
import { type MarginView, RANGES } from "./useMarginView";

export function MarginControls({ view }: { view: MarginView }) {
  const tenants = useTenants();
  return (
    <Group gap="sm">
      <Select
        aria-label="Time"
        data={RANGES}
        value={view.preset}
        onChange={(range) => range && view.change({ range })}
        allowDeselect={false}
        w={160}
      />
      <Select
        aria-label="Split by"
        data={GROUPINGS.map(({ value, label }) => ({ value, label: `By ${label.toLowerCase()}` }))}
        value={view.grouping}
        onChange={(by) => by && view.change({ by })}
        allowDeselect={false}
        w={150}
      />
      <Select
        aria-label="Tenant"
        placeholder="All tenants"
        data={(tenants.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
        value={view.query.tenant_id ?? null}
        onChange={(tenant) => view.change({ tenant: tenant ?? "" })}
        searchable
        clearable
        w={200}
      />
      <Text size="xs" c="dimmed">
        {`Days and hours of ${view.query.tz}`}
      </Text>
    </Group>
  );
}
