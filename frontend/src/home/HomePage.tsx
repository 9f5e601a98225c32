import { Stack } from "@mantine/core";
import { useMemo } from "react";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { useUsage } from "../usage/queries";
import { Attention } from "./Attention";
import { FirstSteps } from "./FirstSteps";
import { MonthFigures } from "./MonthFigures";
import { thisAndLastMonth } from "./period";

export function Component() {
  const { membership } = useTenant();
  const builds = membership !== null && roleCan(membership.role, "keys");
  return (
    <>
      <PageHeader title="Home">
        This month so far, beside the same days of the month before. Days are UTC days.
      </PageHeader>
      <Stack gap="lg">
        <Month />
        <Attention />
        {builds && <FirstSteps />}
      </Stack>
    </>
  );
}

function Month() {
  const { current, previous } = useMemo(() => thisAndLastMonth(new Date()), []);
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
  return <MonthFigures current={now.data.total} previous={before.data?.total ?? null} />;
}
