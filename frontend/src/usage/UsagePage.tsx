import { Stack } from "@mantine/core";
import { IconChartBar } from "@tabler/icons-react";
import { lazy, Suspense } from "react";
import type { Usage } from "../api/types";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { Headlines } from "./Headlines";
import { type Grouping, useUsage } from "./queries";
import type { Range } from "./range";
import { UsageControls } from "./UsageControls";
import { UsageTable } from "./UsageTable";
import { useUsageView } from "./useUsageView";

const SpendChart = lazy(() => import("./SpendChart"));

export function Component() {
  const view = useUsageView();
  return (
    <>
      <PageHeader title="Usage">
        What your tokens cost, and what they cost to make. Days are UTC days.
      </PageHeader>
      <Stack gap="md">
        <UsageControls view={view} />
        <UsageBody range={view.range} grouping={view.grouping} />
      </Stack>
    </>
  );
}

function UsageBody({ range, grouping }: { range: Range; grouping: Grouping }) {
  const usage = useUsage(range, grouping);
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
  if (usage.data.total.requests === 0) return <NothingUsed />;
  return <UsageReport usage={usage.data} range={range} grouping={grouping} />;
}

function NothingUsed() {
  return (
    <EmptyState icon={IconChartBar} title="No requests in this time">
      Send one from the playground or with an API key, or choose a longer time. Numbers appear here
      when the answer ends.
    </EmptyState>
  );
}

function UsageReport({
  usage,
  range,
  grouping,
}: {
  usage: Usage;
  range: Range;
  grouping: Grouping;
}) {
  return (
    <>
      <Headlines total={usage.total} />
      <Suspense fallback={<LoadingCards count={1} height={320} />}>
        <SpendChart range={range} grouping={grouping} />
      </Suspense>
      <UsageTable usage={usage} grouping={grouping} />
    </>
  );
}
