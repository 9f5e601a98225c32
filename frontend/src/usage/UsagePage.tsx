import { Group, Pill, Stack, Text } from "@mantine/core";
import { IconChartBar } from "@tabler/icons-react";
import { lazy, Suspense } from "react";
import type { Usage } from "../api/types";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { Composition } from "./Composition";
import { Generations } from "./Generations";
import { Headlines } from "./Headlines";
import { useUsage } from "./queries";
import { UsageControls } from "./UsageControls";
import { nameOf, UsageTable } from "./UsageTable";
import { type UsageView, useUsageView } from "./useUsageView";

const SpendChart = lazy(() => import("./SpendChart"));

export function Component() {
  const view = useUsageView();
  return (
    <>
      <PageHeader title="Usage">
        What your tokens cost, and what they cost to make: over time, by what used them, down to the
        single request.
      </PageHeader>
      <Stack gap="md">
        <UsageControls view={view} />
        <UsageBody view={view} />
      </Stack>
    </>
  );
}

function UsageBody({ view }: { view: UsageView }) {
  const usage = useUsage(view.range, view.grouping, view.only);
  const previous = useUsage(view.previous ?? view.range, view.grouping, view.only);
  if (usage.isPending) return <LoadingCards count={3} height={120} />;
  if (usage.isError) {
    return (
      <ErrorState
        error={usage.error}
        what="The usage could not be read"
        onRetry={() => usage.refetch()}
      />
    );
  }
  return (
    <>
      <OnlyOne view={view} usage={usage.data} />
      {usage.data.total.requests === 0 ? (
        <NothingUsed />
      ) : (
        <Report
          usage={usage.data}
          previous={view.previous ? previous.data : undefined}
          view={view}
        />
      )}
    </>
  );
}

/** Says that one group alone is shown, and gives the way back. */
function OnlyOne({ view, usage }: { view: UsageView; usage: Usage }) {
  const group = view.only[view.grouping];
  if (!group) return null;
  const label = usage.data[0]?.label ?? group;
  return (
    <Group gap="xs">
      <Text size="sm">Only</Text>
      <Pill
        size="md"
        withRemoveButton
        onRemove={() => view.change({ only: "" })}
        removeButtonProps={{ "aria-label": "Show all again", "aria-hidden": false, tabIndex: 0 }}
      >
        {`${nameOf(view.grouping)}: ${label}`}
      </Pill>
    </Group>
  );
}

function NothingUsed() {
  return (
    <EmptyState icon={IconChartBar} title="No requests in this time">
      Send one from the playground or with an API key, or choose a longer time. Numbers appear here
      when the answer ends.
    </EmptyState>
  );
}

interface ReportProps {
  usage: Usage;
  previous: Usage | undefined;
  view: UsageView;
}

function Report({ usage, previous, view }: ReportProps) {
  const { range, grouping, only } = view;
  return (
    <>
      <Headlines total={usage.total} previous={previous?.total ?? null} />
      <Suspense fallback={<LoadingCards count={1} height={320} />}>
        <SpendChart range={range} grouping={grouping} only={only} />
      </Suspense>
      <Composition range={range} only={only} />
      <UsageTable usage={usage} previous={previous} view={view} />
      <Generations view={view} />
    </>
  );
}
