import { Stack } from "@mantine/core";
import { IconServerOff } from "@tabler/icons-react";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { useFleet } from "./queries";
import { ReplicaCard } from "./ReplicaCard";

export function Component() {
  return (
    <>
      <PageHeader title="Fleet">
        The engines as they are now: what runs, what waits, what fills their memory.
      </PageHeader>
      <Replicas />
    </>
  );
}

function Replicas() {
  const fleet = useFleet();
  if (fleet.isPending) return <LoadingCards height={160} />;
  if (fleet.isError) {
    return (
      <ErrorState
        error={fleet.error}
        what="The fleet could not be read"
        onRetry={() => fleet.refetch()}
      />
    );
  }
  if (fleet.data.replicas.length === 0) {
    return (
      <EmptyState icon={IconServerOff} title="There is no engine">
        Start one, and it appears here.
      </EmptyState>
    );
  }
  return (
    <Stack gap="lg">
      {fleet.data.replicas.map((replica) => (
        <ReplicaCard key={replica.name} replica={replica} fleet={fleet.data} />
      ))}
    </Stack>
  );
}
