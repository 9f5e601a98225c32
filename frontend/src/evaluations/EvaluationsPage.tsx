import { Button, Stack, Text } from "@mantine/core";
import { Link, useParams } from "react-router";
import { readyVersions } from "../adapters/versions";
import type { Adapter } from "../api/types";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { useUrlState } from "../shared/useUrlState";
import { EvaluationList } from "./EvaluationList";
import { EvaluationView } from "./EvaluationView";
import { useAdapter, usePromptSets } from "./queries";
import { StartForm } from "./StartForm";

const NAMES = ["evaluation", "show"] as const;

export function Component() {
  const { adapterId = "" } = useParams();
  const adapter = useAdapter(adapterId);
  const name = adapter.data?.name ?? "the adapter";
  return (
    <>
      <PageHeader
        title="Evaluations"
        action={
          <Button component={Link} to="/adapters" variant="default">
            To the adapters
          </Button>
        }
      >
        {`Two versions of ${name}, or one and its base model, asked the same prompts before you promote one.`}
      </PageHeader>
      {adapter.isPending && <LoadingCards />}
      {adapter.isError && (
        <ErrorState
          error={adapter.error}
          what="The adapter could not be read"
          onRetry={() => adapter.refetch()}
        />
      )}
      {adapter.isSuccess && <OfAdapter adapter={adapter.data} />}
    </>
  );
}

function OfAdapter({ adapter }: { adapter: Adapter }) {
  const { membership } = useTenant();
  const [values, change] = useUrlState(NAMES);
  const canWrite = membership !== null && roleCan(membership.role, "adapters:write");
  const canAsk = canWrite && roleCan(membership.role, "inference");
  if (values.evaluation) {
    return (
      <EvaluationView
        id={values.evaluation}
        canWrite={canWrite}
        onlyDiffering={values.show === "differing"}
        onOnlyDiffering={(only) => change({ show: only ? "differing" : "" })}
        onBack={() => change({ evaluation: "", show: "" })}
      />
    );
  }
  const open = (evaluation: string) => change({ evaluation });
  return (
    <Stack>
      {canAsk && <Start adapter={adapter} onStarted={open} />}
      <EvaluationList adapterId={adapter.id} onOpen={open} />
    </Stack>
  );
}

function Start({ adapter, onStarted }: { adapter: Adapter; onStarted: (id: string) => void }) {
  const sets = usePromptSets(adapter.id);
  if (readyVersions(adapter).length === 0) {
    return (
      <Text size="sm" c="dimmed">
        No version of it is ready: there is nothing to ask yet.
      </Text>
    );
  }
  if (sets.isPending) return <LoadingCards count={1} height={180} />;
  if (sets.isError) {
    return (
      <ErrorState
        error={sets.error}
        what="The prompt sets could not be read"
        onRetry={() => sets.refetch()}
      />
    );
  }
  return <StartForm adapter={adapter} sets={sets.data} onStarted={onStarted} />;
}
