import { Badge, Button, Group, Stack, Table } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconArrowsDiff } from "@tabler/icons-react";
import type { Adapter, Version } from "../api/types";
import { CopyText } from "../shared/CopyText";
import { tell } from "../shared/confirm";
import { ACTIONS, type Column, DataTable } from "../shared/DataTable";
import { formatBytes, formatShare } from "../shared/numbers";
import { formatDateTime } from "../shared/time";
import { CheckReport } from "./CheckReport";
import { DiffModal } from "./DiffModal";
import { PlaceBadge } from "./PlaceBadge";
import { usePlaces, useSetAlias } from "./queries";
import { StateBadge } from "./StateBadge";
import { VersionMenu } from "./VersionMenu";
import { readyVersions, trafficShare } from "./versions";

const COLUMNS: (string | Column)[] = [
  "Model name",
  "State",
  { label: "Rank", right: true, wide: true },
  { label: "Target modules", wide: true },
  { label: "Size", right: true, wide: true },
  { label: "Uploaded", wide: true },
  "Traffic",
  ACTIONS,
];

interface Props {
  adapter: Adapter;
  versions: Version[];
  canWrite: boolean;
}

export function VersionTable({ adapter, versions, canWrite }: Props) {
  const [comparing, compare] = useDisclosure(false);
  const olderRejected = versions.slice(1).filter(({ state }) => state === "rejected");
  return (
    <Stack mt="md" gap="sm">
      <DataTable columns={COLUMNS} minWidth={820} bare dense flush>
        {versions.map((version) => (
          <VersionRow key={version.id} adapter={adapter} version={version} canWrite={canWrite} />
        ))}
      </DataTable>
      {readyVersions(adapter).length > 1 && (
        <Button
          variant="default"
          size="xs"
          w="fit-content"
          leftSection={<IconArrowsDiff size={14} aria-hidden />}
          onClick={compare.open}
        >
          Compare two versions
        </Button>
      )}
      <DiffModal adapter={adapter} opened={comparing} onClose={compare.close} />
      {olderRejected.map(
        (version) =>
          version.report && (
            <CheckReport key={version.id} report={version.report} number={version.number} />
          ),
      )}
    </Stack>
  );
}

interface RowProps {
  adapter: Adapter;
  version: Version;
  canWrite: boolean;
}

function VersionRow({ adapter, version, canWrite }: RowProps) {
  return (
    <Table.Tr>
      <Table.Td>
        <CopyText value={`${adapter.name}@${version.number}`} label="Copy the pinned model name" />
      </Table.Td>
      <Table.Td>
        <Group gap={4}>
          <StateBadge state={version.state} />
          {version.state === "ready" && <Residency version={version} />}
        </Group>
      </Table.Td>
      <Table.Td ta="right">{version.rank ?? "–"}</Table.Td>
      <Table.Td>{version.target_modules?.join(", ") || "–"}</Table.Td>
      <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
        {formatBytes(version.size_bytes)}
      </Table.Td>
      <Table.Td>{formatDateTime(version.created_at)}</Table.Td>
      <Table.Td>
        <Traffic adapter={adapter} version={version} canWrite={canWrite} />
      </Table.Td>
      <Table.Td ta="right">
        <VersionMenu adapter={adapter} version={version} canWrite={canWrite} />
      </Table.Td>
    </Table.Tr>
  );
}

function Residency({ version }: { version: Version }) {
  const places = usePlaces();
  const place = places.data?.get(version.id);
  return place ? <PlaceBadge place={place} /> : null;
}

function Traffic({ adapter, version, canWrite }: RowProps) {
  const setAlias = useSetAlias(adapter);
  const share = trafficShare(adapter, version.number);
  const serve = () =>
    tell(
      setAlias.mutateAsync({
        follows_newest: false,
        splits: [{ version: version.number, weight: 100 }],
      }),
      `${adapter.name} now serves version ${version.number}.`,
      "The version was not changed",
    );
  if (version.state !== "ready") return "–";
  return (
    <Group gap="xs" wrap="nowrap">
      {share > 0 && (
        <Badge variant="light" tt="none">
          {formatShare(share / 100)}
        </Badge>
      )}
      {share < 100 && canWrite && (
        <Button size="compact-xs" variant="default" onClick={serve} loading={setAlias.isPending}>
          Serve
        </Button>
      )}
    </Group>
  );
}
