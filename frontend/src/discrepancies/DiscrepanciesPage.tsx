import { SegmentedControl, Stack } from "@mantine/core";
import { IconScale } from "@tabler/icons-react";
import { useSearchParams } from "react-router";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { DiscrepancyTable } from "./DiscrepancyTable";
import { useDiscrepancies } from "./queries";

const SHOWN = [
  { value: "open", label: "Open" },
  { value: "all", label: "All" },
];

export function Component() {
  const [params, setParams] = useSearchParams();
  const shown = params.get("show") === "all" ? "all" : "open";
  return (
    <>
      <PageHeader title="Discrepancies">
        Where the engine's journal and the books disagree. Nothing is mended silently: look, put it
        right, and say what it was.
      </PageHeader>
      <Stack gap="md">
        <SegmentedControl
          aria-label="Which"
          data={SHOWN}
          value={shown}
          onChange={(show) => setParams({ show }, { replace: true })}
          w="fit-content"
        />
        <List openOnly={shown === "open"} />
      </Stack>
    </>
  );
}

function List({ openOnly }: { openOnly: boolean }) {
  const found = useDiscrepancies();
  if (found.isPending) return <LoadingCards height={48} />;
  if (found.isError) {
    return (
      <ErrorState
        error={found.error}
        what="The discrepancies could not be read"
        onRetry={() => found.refetch()}
      />
    );
  }
  const rows = found.data.filter(({ resolved_at }) => !openOnly || resolved_at === null);
  if (rows.length === 0) {
    return (
      <EmptyState icon={IconScale} title={openOnly ? "Nothing is open" : "There never was one"}>
        The journal and the books agree. They are compared every few seconds.
      </EmptyState>
    );
  }
  return <DiscrepancyTable rows={rows} />;
}
