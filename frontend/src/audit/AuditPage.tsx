import { Button, Group, Select, Stack, TextInput } from "@mantine/core";
import { IconDownload, IconHistory } from "@tabler/icons-react";
import { useSearchParams } from "react-router";
import { notifyFailed } from "../shared/confirm";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { AuditTable } from "./AuditTable";
import { type AuditFilter, useAudit, useAuditExport } from "./queries";
import { KINDS } from "./words";

/** The filter lives in the page's address, so that it can be shared and reloaded. */
function useAuditFilter() {
  const [params, setParams] = useSearchParams();
  const filter: AuditFilter = {};
  for (const name of ["action", "target"] as const) {
    const value = params.get(name);
    if (value) filter[name] = value;
  }
  const change = (name: keyof AuditFilter, value: string) =>
    setParams(
      (old) => {
        if (value) old.set(name, value);
        else old.delete(name);
        return old;
      },
      { replace: true },
    );
  return { filter, change };
}

export function Component() {
  const { filter, change } = useAuditFilter();
  const exporting = useAuditExport(filter);
  const save = () =>
    exporting.mutate(undefined, {
      onError: (error) => notifyFailed("The log was not exported", error),
    });
  const exportButton = (
    <Button
      variant="default"
      leftSection={<IconDownload size={16} aria-hidden />}
      onClick={save}
      loading={exporting.isPending}
    >
      Export as CSV
    </Button>
  );
  return (
    <>
      <PageHeader title="Audit" action={exportButton}>
        Who did what, in this tenant. Nothing here can be changed or removed.
      </PageHeader>
      <Stack gap="md">
        <Group gap="sm">
          <Select
            aria-label="Kind of deed"
            data={KINDS}
            value={filter.action ?? ""}
            onChange={(action) => change("action", action ?? "")}
            allowDeselect={false}
            w={170}
          />
          <TextInput
            aria-label="About"
            placeholder="About: key_… or adp_…"
            value={filter.target ?? ""}
            onChange={(event) => change("target", event.currentTarget.value.trim())}
            w={260}
          />
        </Group>
        <AuditList filter={filter} />
      </Stack>
    </>
  );
}

function AuditList({ filter }: { filter: AuditFilter }) {
  const audit = useAudit(filter);
  if (audit.isPending) return <LoadingCards height={48} />;
  if (audit.isError) {
    return (
      <ErrorState
        error={audit.error}
        what="The log could not be read"
        onRetry={() => audit.refetch()}
      />
    );
  }
  const rows = audit.data.pages.flatMap((page) => page.data);
  if (rows.length === 0) {
    return (
      <EmptyState icon={IconHistory} title="Nothing of that kind yet">
        Deeds appear here the moment they are done.
      </EmptyState>
    );
  }
  return (
    <>
      <AuditTable rows={rows} />
      {audit.hasNextPage && (
        <Group justify="center">
          <Button
            variant="default"
            onClick={() => audit.fetchNextPage()}
            loading={audit.isFetchingNextPage}
          >
            Show older ones
          </Button>
        </Group>
      )}
    </>
  );
}
