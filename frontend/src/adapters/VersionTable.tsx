import { Badge, Button, Group, Stack, Table, Text } from "@mantine/core";
import type { Adapter, Version } from "../api/types";
import { CopyText } from "../shared/CopyText";
import { notifyDone, notifyFailed } from "../shared/confirm";
import { formatBytes } from "../shared/numbers";
import { formatDateTime } from "../shared/time";
import { CheckReport } from "./CheckReport";
import { useSetAlias } from "./queries";
import { StateBadge } from "./StateBadge";
import { trafficShare } from "./versions";

interface Props {
  adapter: Adapter;
  versions: Version[];
  canWrite: boolean;
}

export function VersionTable({ adapter, versions, canWrite }: Props) {
  const olderRejected = versions.slice(1).filter(({ state }) => state === "rejected");
  return (
    <Stack mt="md" gap="sm">
      <Table.ScrollContainer minWidth={680}>
        <Table verticalSpacing="xs" fz="sm">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Model name</Table.Th>
              <Table.Th>State</Table.Th>
              <Table.Th ta="right">Rank</Table.Th>
              <Table.Th>Target modules</Table.Th>
              <Table.Th ta="right">Size</Table.Th>
              <Table.Th>Uploaded</Table.Th>
              <Table.Th>Traffic</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {versions.map((version) => (
              <Table.Tr key={version.id}>
                <Table.Td>
                  <CopyText
                    value={`${adapter.name}@${version.number}`}
                    label="Copy the pinned model name"
                  />
                </Table.Td>
                <Table.Td>
                  <StateBadge state={version.state} />
                </Table.Td>
                <Table.Td ta="right">{version.rank ?? "–"}</Table.Td>
                <Table.Td>{version.target_modules?.join(", ") || "–"}</Table.Td>
                <Table.Td ta="right">{formatBytes(version.size_bytes)}</Table.Td>
                <Table.Td>{formatDateTime(version.created_at)}</Table.Td>
                <Table.Td>
                  <Traffic adapter={adapter} version={version} canWrite={canWrite} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {olderRejected.map(
        (version) =>
          version.report && (
            <CheckReport key={version.id} report={version.report} number={version.number} />
          ),
      )}
    </Stack>
  );
}

function Traffic({
  adapter,
  version,
  canWrite,
}: {
  adapter: Adapter;
  version: Version;
  canWrite: boolean;
}) {
  const setAlias = useSetAlias(adapter);
  const share = trafficShare(adapter, version.number);
  const serve = () =>
    setAlias.mutate(
      { follows_newest: false, splits: [{ version: version.number, weight: 100 }] },
      {
        onSuccess: () => notifyDone(`${adapter.name} now serves version ${version.number}.`),
        onError: (error) => notifyFailed("The version was not changed", error),
      },
    );
  if (version.state === "uploading") {
    return (
      <Text size="xs" c="dimmed">
        drop the folder again to resume
      </Text>
    );
  }
  if (version.state !== "ready") return "–";
  return (
    <Group gap="xs" wrap="nowrap">
      {share > 0 && (
        <Badge variant="light" tt="none">
          {share} %
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
