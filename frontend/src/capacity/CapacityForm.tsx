import { Card, NumberInput, Select, SimpleGrid } from "@mantine/core";
import { DEVICES } from "./devices";
import { type Asked, KV_TYPES } from "./useQuestion";

const NUMBERS = [
  { name: "memory", label: "Memory", suffix: " GB", min: 1, max: 100_000 },
  { name: "context", label: "Tokens of a sequence", suffix: "", min: 1, max: 10_000_000 },
  { name: "slots", label: "Adapter slots", suffix: "", min: 0, max: 100_000 },
  { name: "rank", label: "Rank of the adapters", suffix: "", min: 1, max: 4_096 },
  { name: "reserve", label: "Kept for activations", suffix: " %", min: 0, max: 99 },
] as const;

export function CapacityForm({ asked }: { asked: Asked }) {
  const { change } = asked;
  return (
    <Card withBorder component="section" aria-label="What is asked">
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
        <Select
          label="Model"
          data={asked.models.map(({ value, label }) => ({ value, label }))}
          value={asked.model.value}
          onChange={(model) => model && change({ model })}
          allowDeselect={false}
          searchable
        />
        <Select
          label="Device"
          data={DEVICES.map(({ id, label }) => ({ value: id, label }))}
          value={asked.device.id}
          onChange={(device) => device && change({ device, memory: "" })}
          allowDeselect={false}
        />
        <Select
          label="Keys and values in"
          data={KV_TYPES}
          value={asked.question.kv}
          onChange={(kv) => kv && change({ kv })}
          allowDeselect={false}
        />
        {NUMBERS.map(({ name, label, ...limits }) => (
          <NumberInput
            key={name}
            label={label}
            value={asked.fields[name]}
            onChange={(value) => value !== "" && change({ [name]: String(value) })}
            allowDecimal={false}
            thousandSeparator=","
            clampBehavior="strict"
            {...limits}
          />
        ))}
      </SimpleGrid>
    </Card>
  );
}
