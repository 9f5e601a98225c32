import { Card, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { TurnView } from "./TurnView";
import type { Lane } from "./useLane";

interface Props {
  lanes: { model: string; lane: Lane }[];
}

export function Lanes({ lanes }: Props) {
  return (
    <SimpleGrid cols={{ base: 1, sm: lanes.length }} spacing="md">
      {lanes.map(({ model, lane }) => (
        <Card
          key={model}
          withBorder
          component="section"
          aria-label={`Conversation with ${model}`}
          mih={{ base: 200, md: 360 }}
        >
          <Title order={2} size="h4" mb="sm" style={{ overflowWrap: "anywhere" }}>
            {model}
          </Title>
          <Stack gap="lg">
            {lane.turns.length === 0 && (
              <Text c="dimmed" size="sm">
                Nothing said yet. Write a message below.
              </Text>
            )}
            {lane.turns.map((turn) => (
              <TurnView key={turn.id} turn={turn} />
            ))}
          </Stack>
        </Card>
      ))}
    </SimpleGrid>
  );
}
