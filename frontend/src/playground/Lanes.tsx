import { ActionIcon, Card, Group, Select, SimpleGrid, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconX } from "@tabler/icons-react";
import { useState } from "react";
import type { Turn } from "./answer";
import { CodeModal } from "./CodeModal";
import type { ModelGroup } from "./models";
import { TurnView } from "./TurnView";
import type { Lane } from "./useLane";

export interface Column {
  model: string;
  lane: Lane;
}

interface Props {
  columns: Column[];
  groups: ModelGroup[];
  doorUrl: string;
  onModel: (index: number, model: string) => void;
  onRemove: (index: number) => void;
}

/** One column per model, all asked the same. */
export function Lanes({ columns, groups, doorUrl, onModel, onRemove }: Props) {
  const [shown, setShown] = useState<Turn | null>(null);
  const [open, code] = useDisclosure(false);
  const showCode = (turn: Turn) => {
    setShown(turn);
    code.open();
  };
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: Math.min(columns.length, 2), xl: columns.length }}>
        {columns.map((column, index) => (
          <LaneCard
            // biome-ignore lint/suspicious/noArrayIndexKey: a column is its place, whatever its model
            key={index}
            column={column}
            place={index + 1}
            groups={groups}
            onModel={(model) => onModel(index, model)}
            onRemove={columns.length > 1 ? () => onRemove(index) : null}
            onShowCode={showCode}
          />
        ))}
      </SimpleGrid>
      {shown && <CodeModal turn={shown} doorUrl={doorUrl} opened={open} onClose={code.close} />}
    </>
  );
}

interface LaneProps {
  column: Column;
  place: number;
  groups: ModelGroup[];
  onModel: (model: string) => void;
  onRemove: (() => void) | null;
  onShowCode: (turn: Turn) => void;
}

function LaneCard({
  column: { model, lane },
  place,
  groups,
  onModel,
  onRemove,
  onShowCode,
}: LaneProps) {
  return (
    <Card
      withBorder
      component="section"
      aria-label={`Conversation with ${model}`}
      mih={{ base: 200, md: 360 }}
    >
      <Group wrap="nowrap" gap="xs" mb="sm">
        <Select
          aria-label={`Model of column ${place}`}
          data={groups}
          value={model}
          onChange={(next) => next && onModel(next)}
          allowDeselect={false}
          searchable
          flex={1}
        />
        {onRemove && (
          <ActionIcon
            variant="subtle"
            color="gray"
            onClick={onRemove}
            aria-label={`Remove column ${place}`}
          >
            <IconX size={16} aria-hidden />
          </ActionIcon>
        )}
      </Group>
      <Stack gap="lg">
        {lane.turns.length === 0 && (
          <Text c="dimmed" size="sm">
            Nothing said yet. Write a message below.
          </Text>
        )}
        {lane.turns.map((turn) => (
          <TurnView key={turn.id} turn={turn} onShowCode={onShowCode} />
        ))}
      </Stack>
    </Card>
  );
}
