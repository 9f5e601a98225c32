import { Code, Group, Modal, Select, Stack, Table, Text } from "@mantine/core";
import { useState } from "react";
import type { Adapter, Version } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatBytes } from "../shared/numbers";
import { configDiff, type Difference } from "./configDiff";
import { useConfig } from "./queries";
import { readyVersions } from "./versions";

interface Props {
  adapter: Adapter;
  opened: boolean;
  onClose: () => void;
}

/** How the configurations of two versions differ, and what else does. */
export function DiffModal({ adapter, opened, onClose }: Props) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={`Compare versions of ${adapter.name}`}
      size="xl"
    >
      {opened && <Compared adapter={adapter} />}
    </Modal>
  );
}

function Compared({ adapter }: { adapter: Adapter }) {
  const ready = readyVersions(adapter);
  const numbers = ready.map(({ number }) => ({
    value: String(number),
    label: `version ${number}`,
  }));
  const [newer, setNewer] = useState(numbers[0]?.value ?? "");
  const [older, setOlder] = useState(numbers[1]?.value ?? "");
  const find = (number: string) => ready.find((version) => String(version.number) === number);
  const [before, after] = [find(older), find(newer)];
  return (
    <Stack>
      <Group grow>
        <Select
          label="Before"
          data={numbers}
          value={older}
          onChange={(value) => value && setOlder(value)}
          allowDeselect={false}
        />
        <Select
          label="After"
          data={numbers}
          value={newer}
          onChange={(value) => value && setNewer(value)}
          allowDeselect={false}
        />
      </Group>
      {before && after && <Differences before={before} after={after} />}
    </Stack>
  );
}

function Differences({ before, after }: { before: Version; after: Version }) {
  const old = useConfig(before.id);
  const now = useConfig(after.id);
  if (old.isError || now.isError) {
    return (
      <ErrorState
        error={old.error ?? now.error}
        what="The configurations could not be read"
        onRetry={() => Promise.all([old.refetch(), now.refetch()])}
      />
    );
  }
  if (!old.data || !now.data) return <LoadingCards count={1} height={120} />;
  const rows = [...contentDiff(before, after), ...configDiff(old.data, now.data)];
  if (rows.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        They have the same configuration and the same weights.
      </Text>
    );
  }
  return (
    <DataTable columns={["Field", "Before", "After"]} minWidth={520} bare dense flush>
      {rows.map((row) => (
        <Table.Tr key={row.field}>
          <Table.Td fw={600}>{row.field}</Table.Td>
          <Table.Td>
            <Value text={row.before} />
          </Table.Td>
          <Table.Td>
            <Value text={row.after} />
          </Table.Td>
        </Table.Tr>
      ))}
    </DataTable>
  );
}

function Value({ text }: { text: string | null }) {
  if (text === null) return "–";
  return <Code style={{ overflowWrap: "anywhere" }}>{text}</Code>;
}

/** What no configuration says: whether the weights are others. */
function contentDiff(before: Version, after: Version): Difference[] {
  const rows: Difference[] = [
    {
      field: "size of all files",
      before: formatBytes(before.size_bytes),
      after: formatBytes(after.size_bytes),
    },
    {
      field: "content digest",
      before: before.digest?.slice(0, 12) ?? null,
      after: after.digest?.slice(0, 12) ?? null,
    },
  ];
  return rows.filter((row) => row.before !== row.after);
}
