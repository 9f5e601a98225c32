import { Alert, Badge, Card, Group, Stack, Text, Title } from "@mantine/core";
import { lazy, Suspense } from "react";
import type { Fleet, Replica } from "../api/types";
import { LoadingCards } from "../shared/LoadingCards";
import { LoadFigures } from "./LoadFigures";
import { Memory } from "./Memory";
import { QueueTable } from "./QueueTable";
import { ReplicaActions } from "./ReplicaActions";
import { newestRates } from "./rates";
import { useHistory } from "./useHistory";

const ThroughputChart = lazy(() => import("./ThroughputChart"));

const COLORS: Record<Replica["state"], string> = {
  serving: "veneer",
  draining: "orange",
  away: "red",
};

export function ReplicaCard({ replica, fleet }: { replica: Replica; fleet: Fleet }) {
  const looks = useHistory(fleet, replica.name);
  const { load, limits, totals } = replica;
  return (
    <Card withBorder component="section" aria-label={`Replica ${replica.name}`}>
      <Stack gap="lg">
        <Heading replica={replica} />
        {replica.state === "draining" && (
          <Alert color="orange" variant="light">
            New requests are refused with 503 until it is resumed or restarted. What was accepted
            runs to its end.
          </Alert>
        )}
        {load && limits && totals ? (
          <>
            <LoadFigures load={load} limits={limits} rates={newestRates(looks)} />
            <Memory load={load} />
            <Suspense fallback={<LoadingCards count={1} height={200} />}>
              <ThroughputChart looks={looks} />
            </Suspense>
            <QueueTable load={load} />
            <Ended totals={totals} />
          </>
        ) : (
          <Alert color="red" variant="light" title="It does not answer">
            Requests get 503. Its supervisor starts it again by itself when it has died; a large
            model takes its time to load. Its log says why.
          </Alert>
        )}
      </Stack>
    </Card>
  );
}

function Heading({ replica }: { replica: Replica }) {
  const what = [replica.base_model, replica.device, replica.kv && `${replica.kv} KV`];
  return (
    <Group justify="space-between" gap="sm">
      <div>
        <Group gap="xs">
          <Title order={2}>{replica.name}</Title>
          <Badge variant="light" color={COLORS[replica.state]} tt="none">
            {replica.state}
          </Badge>
        </Group>
        <Text size="sm" c="dimmed">
          {what.filter(Boolean).join(" · ")}
        </Text>
      </div>
      <ReplicaActions replica={replica} />
    </Group>
  );
}

/** How requests ended since the engine started; refusals are those that were never let in. */
function Ended({ totals }: { totals: NonNullable<Replica["totals"]> }) {
  const words = (counts: Record<string, number>) =>
    Object.entries(counts)
      .sort(([, a], [, b]) => b - a)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ");
  return (
    <Text size="xs" c="dimmed" className="figures">
      {`Since its start: ${words(totals.ended) || "no request ended"}. `}
      {Object.keys(totals.refused).length > 0 && `Refused: ${words(totals.refused)}. `}
      {`Preempted: ${totals.preemptions}.`}
    </Text>
  );
}
