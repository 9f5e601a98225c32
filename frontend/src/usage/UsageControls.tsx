import { Group, SegmentedControl, Select } from "@mantine/core";
import { DatePickerInput } from "@mantine/dates";
import { PRESETS } from "./range";
import type { UsageView } from "./useUsageView";

const GROUPINGS = [
  { value: "adapter", label: "By adapter" },
  { value: "key", label: "By key" },
];

export function UsageControls({ view }: { view: UsageView }) {
  return (
    <Group gap="sm">
      <Select
        aria-label="Time"
        data={PRESETS}
        value={view.preset}
        onChange={(range) => range && view.change({ range })}
        allowDeselect={false}
        w={170}
      />
      {view.preset === "custom" && (
        <DatePickerInput
          type="range"
          aria-label="Days"
          placeholder="First and last day"
          allowSingleDateInRange
          defaultValue={view.days}
          onChange={([first, last]) => {
            if (first && last) view.change({ first, last });
          }}
          maxDate={new Date()}
          miw={220}
        />
      )}
      <SegmentedControl
        aria-label="Split"
        data={GROUPINGS}
        value={view.grouping}
        onChange={(by) => view.change({ by })}
      />
    </Group>
  );
}
