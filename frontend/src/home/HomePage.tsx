import { Stack } from "@mantine/core";
import { useMemo } from "react";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { useUsage } from "../usage/queries";
import { presetRange, previousRange, type Range } from "../usage/range";
import { viewerZone } from "../usage/zone";
import { Attention } from "./Attention";
import { FirstSteps } from "./FirstSteps";
import { LatencyFigures } from "./LatencyFigures";
import { MonthFigures } from "./MonthFigures";

export function Component() {
  const { membership } = useTenant();
  const builds = membership !== null && roleCan(membership.role, "keys");
  const current = useMemo(() => presetRange("month", new Date(), viewerZone()), []);
  const previous = useMemo(() => previousRange(current), [current]);
  return (
    <>
      <PageHeader title="Home">
        {`This month so far, beside the same days of the month before. Days are those of ${current.tz}.`}
      </PageHeader>
      <Stack gap="lg">
        <Month current={current} previous={previous} />
        <Attention />
        {builds && <FirstSteps />}
      </Stack>
    </>
  );
}

function Month({ current, previous }: { current: Range; previous: Range }) {
  const now = useUsage(current, "adapter");
  const before = useUsage(previous, "adapter");
  if (now.isPending) return <LoadingCards count={1} height={110} />;
  if (now.isError) {
    return (
      <ErrorState
        error={now.error}
        what="The usage could not be read"
        onRetry={() => now.refetch()}
      />
    );
  }
  return (
    <Stack gap="md">
      <MonthFigures current={now.data.total} previous={before.data?.total ?? null} />
      <LatencyFigures current={current} previous={previous} />
    </Stack>
  );
}
