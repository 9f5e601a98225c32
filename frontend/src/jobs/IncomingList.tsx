import { Code, Group, Select, Stack, Table, Text, Tooltip } from "@mantine/core";
import { IconPackageImport } from "@tabler/icons-react";
import { StateBadge } from "../adapters/StateBadge";
import type { Incoming } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { ListStates } from "../shared/ListStates";
import { LoadMore } from "../shared/LoadMore";
import { formatBytes, formatCount } from "../shared/numbers";
import { SearchField } from "../shared/SearchField";
import { formatAgo, formatDateTime } from "../shared/time";
import { useUrlState } from "../shared/useUrlState";
import { type IncomingState, useIncoming } from "./queries";

const NAMES = ["state", "search"] as const;
const STATES: { value: IncomingState; label: string }[] = [
  { value: "uploading", label: "Uploading or fetched" },
  { value: "checking", label: "Being checked" },
  { value: "ready", label: "Ready" },
  { value: "rejected", label: "Rejected" },
];
const COLUMNS = [
  "Adapter",
  "Tenant",
  { label: "Comes by", wide: true },
  "State",
  "For",
  { label: "Tries", right: true, wide: true },
  { label: "Size", right: true, wide: true },
  "Report",
];
const NOTHING = {
  icon: IconPackageImport,
  title: "No such adapter",
  text: "Uploads, imports and their checks appear here, of every tenant, the newest first.",
};

export function IncomingList() {
  const [values, change] = useUrlState(NAMES);
  const state = STATES.find(({ value }) => value === values.state)?.value ?? "";
  const { list, rows } = useIncoming(state, values.search);
  return (
    <Stack>
      <Group gap="sm">
        <Select
          aria-label="State"
          placeholder="All states"
          data={STATES}
          value={state || null}
          onChange={(value) => change({ state: value ?? "" })}
          clearable
          w={200}
        />
        <SearchField
          label="Adapter or tenant"
          value={values.search}
          onSearch={(search) => change({ search })}
        />
      </Group>
      <ListStates query={list} isEmpty={rows?.length === 0} what="The adapters" nothing={NOTHING}>
        <DataTable columns={COLUMNS} minWidth={900} dense>
          {rows?.map((version) => (
            <IncomingRow key={version.id} version={version} />
          ))}
        </DataTable>
        <LoadMore shown={rows?.length ?? 0} what="version" list={list} />
      </ListStates>
    </Stack>
  );
}

function IncomingRow({ version }: { version: Incoming }) {
  return (
    <Table.Tr>
      <Table.Td fw={600}>{`${version.adapter}@${version.number}`}</Table.Td>
      <Table.Td>
        <Code>{version.tenant}</Code>
      </Table.Td>
      <Table.Td>{version.is_import ? "import" : "upload"}</Table.Td>
      <Table.Td>
        <StateBadge state={version.state} />
      </Table.Td>
      <Table.Td>
        <Tooltip label={formatDateTime(version.state_at)}>
          <span>{formatAgo(version.state_at)}</span>
        </Tooltip>
      </Table.Td>
      <Table.Td ta="right">{formatCount(version.attempts)}</Table.Td>
      <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
        {formatBytes(version.size_bytes)}
      </Table.Td>
      <Table.Td>
        <Text size="xs" c="dimmed" maw={320}>
          {version.summary}
        </Text>
      </Table.Td>
    </Table.Tr>
  );
}
