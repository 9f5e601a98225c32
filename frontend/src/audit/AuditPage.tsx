import { Button, Group, Select, Stack, TextInput } from "@mantine/core";
import { IconDownload, IconHistory } from "@tabler/icons-react";
import { notifyFailed } from "../shared/confirm";
import { ListStates } from "../shared/ListStates";
import { LoadMore } from "../shared/LoadMore";
import { PageHeader } from "../shared/PageHeader";
import { useUrlState } from "../shared/useUrlState";
import { AuditTable } from "./AuditTable";
import { type AuditFilter, useAudit, useAuditExport } from "./queries";
import { KINDS } from "./words";

const NAMES = ["action", "target"] as const;
const NOTHING = {
  icon: IconHistory,
  title: "Nothing of that kind yet",
  text: "Deeds appear here the moment they are done.",
};

export function Component() {
  const [filter, change] = useUrlState(NAMES);
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
            value={filter.action}
            onChange={(action) => change({ action: action ?? "" })}
            allowDeselect={false}
            w={170}
          />
          <TextInput
            aria-label="About"
            placeholder="About: key_… or adp_…"
            value={filter.target}
            onChange={(event) => change({ target: event.currentTarget.value.trim() })}
            w={260}
          />
        </Group>
        <AuditList filter={filter} />
      </Stack>
    </>
  );
}

function AuditList({ filter }: { filter: AuditFilter }) {
  const { list, rows } = useAudit(filter);
  return (
    <ListStates query={list} isEmpty={rows?.length === 0} what="The log" nothing={NOTHING}>
      <AuditTable rows={rows ?? []} />
      <LoadMore shown={rows?.length ?? 0} what="deed" list={list} onward />
    </ListStates>
  );
}
