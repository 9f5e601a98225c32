import "@mantine/dates/styles.css";
import { Group, SegmentedControl, Select, Switch } from "@mantine/core";
import { DatePickerInput } from "@mantine/dates";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { formatUtcDate } from "../shared/time";
import { PRESETS } from "./range";
import { GROUPINGS, STEPS, type UsageView } from "./useUsageView";
import { viewerZone } from "./zone";

/** A single group is looked at within one split: another split shows all of it again. */
export function UsageControls({ view }: { view: UsageView }) {
  const { membership } = useTenant();
  const seesPeople = membership !== null && roleCan(membership.role, "members");
  const groupings = GROUPINGS.filter(({ value }) => seesPeople || value !== "member");
  return (
    <Group gap="sm">
      <Select
        aria-label="Time"
        data={PRESETS}
        value={view.preset}
        onChange={(range) => range && view.change({ range, step: "" })}
        allowDeselect={false}
        w={160}
      />
      {view.preset === "custom" && <Days view={view} />}
      <Select
        aria-label="Split by"
        data={groupings.map(({ value, label }) => ({ value, label: `By ${label.toLowerCase()}` }))}
        value={view.grouping}
        onChange={(by) => by && view.change({ by, only: "" })}
        allowDeselect={false}
        w={175}
      />
      <SegmentedControl
        aria-label="Step"
        data={STEPS}
        value={view.range.step}
        onChange={(step) => view.change({ step })}
      />
      <Zone view={view} />
      <Switch
        label="Compare with the time before"
        checked={view.previous !== null}
        onChange={(event) => view.change({ compare: event.currentTarget.checked ? "1" : "" })}
      />
    </Group>
  );
}

function Days({ view }: { view: UsageView }) {
  return (
    <DatePickerInput
      type="range"
      aria-label="Days"
      placeholder="First and last day"
      allowSingleDateInRange
      defaultValue={view.days}
      onChange={([first, last]) => {
        if (first && last) view.change({ first, last, step: "" });
      }}
      valueFormatter={({ date }) =>
        [date]
          .flat()
          .flatMap((day) => (day ? [formatUtcDate(String(day))] : []))
          .join(" – ")
      }
      maxDate={new Date()}
      miw={220}
    />
  );
}

function Zone({ view }: { view: UsageView }) {
  const zones = [...new Set([viewerZone(), "UTC", view.range.tz])];
  const label = (zone: string) => (zone === viewerZone() ? `${zone} (yours)` : zone);
  return (
    <Select
      aria-label="Time zone of days and hours"
      data={zones.map((zone) => ({ value: zone, label: label(zone) }))}
      value={view.range.tz}
      onChange={(tz) => tz && view.change({ tz })}
      allowDeselect={false}
      w={210}
    />
  );
}
