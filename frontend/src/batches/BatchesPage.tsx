import { Card, Stack, Title } from "@mantine/core";
import { IconFiles } from "@tabler/icons-react";
import { useTenant } from "../session/context";
import { CodeTabs } from "../shared/CodeTabs";
import { EmptyState } from "../shared/EmptyState";
import { ListStates } from "../shared/ListStates";
import { LoadMore } from "../shared/LoadMore";
import { PageHeader } from "../shared/PageHeader";
import { useUrlState } from "../shared/useUrlState";
import { BatchModal } from "./BatchModal";
import { BatchTable } from "./BatchTable";
import { batchExample } from "./batchExample";
import { useBatches } from "./queries";
import { StatusSelect } from "./StatusSelect";
import { statusOf } from "./statuses";

const NAMES = ["status", "batch"] as const;
const NOTHING = {
  icon: IconFiles,
  title: "No batch has this status",
  text: "Choose another status, or look at all of them.",
};

export function Component() {
  const [values, change] = useUrlState(NAMES);
  const status = statusOf(values.status);
  const { list, rows } = useBatches(status);
  const isNew = rows?.length === 0 && status === "";
  return (
    <>
      <PageHeader title="Batches">
        Many requests in one file, answered within 24 hours at a discount. Batches of all keys are
        here, the newest first.
      </PageHeader>
      {isNew ? (
        <FirstBatch />
      ) : (
        <Stack>
          <StatusSelect status={status} onStatus={(chosen) => change({ status: chosen })} />
          <ListStates
            query={list}
            isEmpty={rows?.length === 0}
            what="The batches"
            nothing={NOTHING}
          >
            <BatchTable batches={rows ?? []} onOpen={(batch) => change({ batch })} />
            <LoadMore shown={rows?.length ?? 0} what="batch" many="batches" list={list} onward />
          </ListStates>
        </Stack>
      )}
      {values.batch && (
        <BatchModal key={values.batch} id={values.batch} onClose={() => change({ batch: "" })} />
      )}
    </>
  );
}

function FirstBatch() {
  const { session } = useTenant();
  return (
    <Stack>
      <EmptyState icon={IconFiles} title="No batches yet">
        A program makes one with its API key. What it costs so far, and which lines failed, appears
        here.
      </EmptyState>
      <Card withBorder>
        <Title order={2} size="h4" mb="sm">
          Your first batch
        </Title>
        <CodeTabs examples={{ Python: batchExample(session.door_url, session.base_model.name) }} />
      </Card>
    </Stack>
  );
}
