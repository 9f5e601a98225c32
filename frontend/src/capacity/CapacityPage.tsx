import { Stack } from "@mantine/core";
import { lazy, Suspense } from "react";
import type { BaseModel } from "../api/types";
import { useFleet } from "../fleet/queries";
import { useBaseModels } from "../operator/platform";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { answer } from "./arithmetic";
import { CapacityForm } from "./CapacityForm";
import { CapacityResult } from "./CapacityResult";
import { measuredPoint } from "./measured";
import { RankTable } from "./RankTable";
import { useQuestion } from "./useQuestion";

const Roofline = lazy(() => import("./Roofline"));

export function Component() {
  return (
    <>
      <PageHeader title="Capacity">
        What a model needs on a device, what fits beside it, and what bounds a step.
      </PageHeader>
      <Loaded />
    </>
  );
}

function Loaded() {
  const models = useBaseModels();
  if (models.isPending) return <LoadingCards height={120} />;
  if (models.isError) {
    return (
      <ErrorState
        error={models.error}
        what="The models could not be read"
        onRetry={() => models.refetch()}
      />
    );
  }
  return <Worksheet known={models.data} />;
}

function Worksheet({ known }: { known: BaseModel[] }) {
  const fleet = useFleet();
  const [replica] = fleet.data?.replicas ?? [];
  const asked = useQuestion(known, replica?.device ?? "");
  const { size, value: name } = asked.model;
  const isServed = known.some((model) => model.is_served && model.name === name);
  const measured = isServed && replica ? measuredPoint(size, replica) : null;
  return (
    <Stack gap="lg">
      <CapacityForm asked={asked} />
      <CapacityResult found={answer(size, asked.question)} asked={asked} />
      <Suspense fallback={<LoadingCards count={1} height={340} />}>
        <Roofline size={size} question={asked.question} measured={measured} />
      </Suspense>
      <RankTable size={size} question={asked.question} />
    </Stack>
  );
}
