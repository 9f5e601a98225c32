import { Group, Progress, SimpleGrid, Text } from "@mantine/core";
import type { Replica } from "../api/types";
import { formatCount } from "../shared/numbers";
import { sumOf } from "./LoadFigures";

type Load = NonNullable<Replica["load"]>;

interface Part {
  label: string;
  count: number;
  color: string;
}

/** What the KV pages and the adapter slots hold; and where adapters are besides. */
export function Memory({ load }: { load: Load }) {
  const { slot = 0, host = 0, disk = 0 } = load.adapters;
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="lg">
      <Meter
        label="KV pages"
        total={sumOf(load.pages)}
        parts={[
          { label: "used", count: load.pages.used ?? 0, color: "veneer.7" },
          { label: "cached", count: load.pages.cached ?? 0, color: "indigo.4" },
        ]}
      />
      <Meter
        label="Adapter slots"
        total={load.slots}
        parts={[
          { label: "in use", count: load.slots_in_use, color: "veneer.7" },
          { label: "loaded", count: Math.max(slot - load.slots_in_use, 0), color: "indigo.4" },
        ]}
        note={`${formatCount(load.pinned)} pinned · ${formatCount(host)} in host memory · ${formatCount(disk)} on disk`}
      />
    </SimpleGrid>
  );
}

function Meter({
  label,
  total,
  parts,
  note,
}: {
  label: string;
  total: number;
  parts: Part[];
  note?: string;
}) {
  const free = total - parts.reduce((sum, { count }) => sum + count, 0);
  const words = [
    ...parts.map((part) => `${formatCount(part.count)} ${part.label}`),
    `${formatCount(free)} free`,
  ];
  return (
    <div>
      <Group justify="space-between" gap="xs" mb={4}>
        <Text size="sm" fw={500}>
          {label}
        </Text>
        <Text size="xs" c="dimmed" className="figures">
          {`${words.join(", ")} of ${formatCount(total)}`}
        </Text>
      </Group>
      <Progress.Root size="lg">
        {parts.map((part) => (
          <Progress.Section
            key={part.label}
            value={total ? (100 * part.count) / total : 0}
            color={part.color}
            aria-label={`${label} ${part.label}`}
          />
        ))}
      </Progress.Root>
      {note && (
        <Text size="xs" c="dimmed" mt={4} className="figures">
          {note}
        </Text>
      )}
    </div>
  );
}
