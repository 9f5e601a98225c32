import { Badge, Button, Card, Group, Progress, Table, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Level, LimitUse } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { formatShare } from "../shared/numbers";
import { LimitsModal } from "./LimitsModal";
import type { Whose } from "./queries";
import { amountWords, kindWords, LEVELS, resetWords, shares } from "./words";

interface Props {
  level: Level;
  /** Whether whoever looks may set these limits. */
  editable: boolean;
}

const COLUMNS = [
  "Limit",
  { label: "Use", wide: true },
  { label: "Spent or used", right: true, wide: true },
  { label: "Reserved", right: true, wide: true },
  { label: "Left", right: true },
  { label: "Of", right: true },
  "Full again",
];

export function LevelCard({ level, editable }: Props) {
  return (
    <Card withBorder component="section" aria-label={`Limits of ${level.label}`}>
      <Group justify="space-between" mb="xs">
        <Group gap="xs">
          <Text fw={600}>{level.label}</Text>
          <Badge variant="light" tt="none" color="gray">
            {LEVELS[level.level]}
          </Badge>
        </Group>
        {editable && level.level !== "tenant" && level.id && (
          <EditButton whose={{ level: level.level, id: level.id, label: level.label }} />
        )}
      </Group>
      {level.uses.length === 0 ? (
        <Text size="sm" c="dimmed">
          Nothing is limited here.
        </Text>
      ) : (
        <DataTable columns={COLUMNS} minWidth={640} bare dense flush>
          {level.uses.map((use) => (
            <UseRow key={use.kind} use={use} />
          ))}
        </DataTable>
      )}
    </Card>
  );
}

function EditButton({ whose }: { whose: Whose }) {
  const [opened, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        onClick={open}
        aria-label={`Change the limits of ${whose.label}`}
      >
        Change
      </Button>
      {opened && <LimitsModal whose={whose} onClose={close} />}
    </>
  );
}

function UseRow({ use }: { use: LimitUse }) {
  const { used, reserved } = shares(use);
  const name = kindWords(use);
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap="xs">
          {name}
          {use.binds && (
            <Badge size="sm" variant="light" color="orange" tt="none">
              binds first
            </Badge>
          )}
        </Group>
      </Table.Td>
      <Table.Td miw={120}>
        <Progress.Root
          role="img"
          aria-label={`${name}: ${formatShare((used + reserved) / 100)} used or reserved`}
        >
          <Progress.Section
            value={used}
            color={used + reserved >= 80 ? "orange" : "veneer"}
            withAria={false}
          />
          <Progress.Section value={reserved} color="gray" striped withAria={false} />
        </Progress.Root>
      </Table.Td>
      <Table.Td ta="right">{amountWords(use, use.used)}</Table.Td>
      <Table.Td ta="right">{amountWords(use, use.reserved)}</Table.Td>
      <Table.Td ta="right">{amountWords(use, use.left)}</Table.Td>
      <Table.Td ta="right">{amountWords(use, use.limit)}</Table.Td>
      <Table.Td>{resetWords(use.resets_in)}</Table.Td>
    </Table.Tr>
  );
}
