import { Button, Stack } from "@mantine/core";
import { IconDownload, IconScaleOutline } from "@tabler/icons-react";
import { lazy, Suspense } from "react";
import { notifyFailed } from "../shared/confirm";
import { ListStates } from "../shared/ListStates";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { MarginControls } from "./MarginControls";
import { MarginFigures } from "./MarginFigures";
import { MarginTable } from "./MarginTable";
import { useMargin, useMarginExport } from "./queries";
import { SavingsCard } from "./SavingsCard";
import { type MarginView, useMarginView } from "./useMarginView";

const MarginChart = lazy(() => import("./MarginChart"));
const NOTHING = {
  icon: IconScaleOutline,
  title: "No requests in this time",
  text: "Choose a longer time. What the device costs while it is idle shows once something ran.",
};

export function Component() {
  const view = useMarginView();
  const save = useMarginExport(view.query);
  const exportButton = (
    <Button
      variant="default"
      leftSection={<IconDownload size={16} aria-hidden />}
      loading={save.isPending}
      onClick={() =>
        save.mutate(undefined, {
          onError: (error) => notifyFailed("The table was not exported", error),
        })
      }
    >
      Export as CSV
    </Button>
  );
  return (
    <>
      <PageHeader title="Margin" action={exportButton}>
        What comes in, what the device's time costs, and what is left.
      </PageHeader>
      <Stack>
        <MarginControls view={view} />
        <Report view={view} />
      </Stack>
    </>
  );
}

function Report({ view }: { view: MarginView }) {
  const margin = useMargin(view.query);
  const found = margin.data;
  return (
    <ListStates
      query={margin}
      isEmpty={found?.total.requests === 0}
      what="The margin"
      nothing={NOTHING}
    >
      {found && (
        <>
          <MarginFigures total={found.total} device={found.device} />
          <Suspense fallback={<LoadingCards count={1} height={300} />}>
            <MarginChart rows={found.data} />
          </Suspense>
          <MarginTable margin={found} grouping={view.grouping} />
          <SavingsCard margin={found} />
        </>
      )}
    </ListStates>
  );
}
