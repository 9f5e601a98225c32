import { Card, SimpleGrid, Text, Title } from "@mantine/core";
import type { Margin } from "../api/types";
import { Figure } from "../shared/Figure";
import { formatEstimate } from "../shared/money";
import { savingsOf } from "./savings";

/** Where the next cost could go. Estimates, which no book has. */
export function SavingsCard({ margin }: { margin: Margin }) {
  const found = savingsOf(margin);
  return (
    <Card withBorder component="section" aria-label="What would save">
      <Title order={2}>What would save</Title>
      <Text size="xs" c="dimmed" mb="md">
        Estimates for this time, at the cost of an hour of the device.
      </Text>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <Figure
          label="No idle time"
          note="the device is paid for while nobody asks; of all tenants"
        >
          {formatEstimate(found.idle)}
        </Figure>
        <Figure
          label="Batches twice as full"
          note="at most: a decode step reads all weights, whether for one sequence or for two"
        >
          {formatEstimate(found.fullerBatch)}
        </Figure>
        <Figure
          label="A warmer cache"
          note="ten more of a hundred prompt tokens from the prefix cache"
        >
          {formatEstimate(found.warmerCache)}
        </Figure>
      </SimpleGrid>
    </Card>
  );
}
