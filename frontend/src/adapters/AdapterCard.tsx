import { Button, Card, Group, Stack, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconScale } from "@tabler/icons-react";
import { Link } from "react-router";
import type { Adapter, Version } from "../api/types";
import { CopyIcon } from "../shared/CopyText";
import { formatBytes, plural } from "../shared/numbers";
import { ToggleButton } from "../shared/ToggleButton";
import { formatAgo } from "../shared/time";
import classes from "./AdapterCard.module.css";
import { AdapterMenu } from "./AdapterMenu";
import { CheckReport } from "./CheckReport";
import { PinSwitch } from "./PinSwitch";
import { PlaceBadge } from "./PlaceBadge";
import { usePlaces } from "./queries";
import { StateBadge } from "./StateBadge";
import { UnfinishedVersion } from "./UnfinishedVersion";
import { VersionTable } from "./VersionTable";
import { newestFirst, readyVersions, servingText } from "./versions";

interface Props {
  adapter: Adapter;
  /** The version that this page is uploading: its progress shows elsewhere. */
  sending: string | null;
  canWrite: boolean;
  canPin: boolean;
}

export function AdapterCard({ adapter, sending, canWrite, canPin }: Props) {
  const [open, { toggle }] = useDisclosure(false);
  const versions = newestFirst(adapter);
  const newest = versions[0];
  return (
    <Card
      withBorder
      padding="md"
      component="article"
      aria-label={`Adapter ${adapter.name}`}
      className={classes.card}
    >
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <Stack gap={4} miw={0}>
          <Group gap="xs">
            <Title order={2} size="h4" style={{ overflowWrap: "anywhere" }}>
              {adapter.name}
            </Title>
            <CopyIcon value={adapter.name} label="Copy the model name" />
            <StateBadge state={adapter.state} />
            <ServedPlace version={servedVersion(adapter)} />
          </Group>
          <Text size="sm" c="dimmed">
            {summaryOf(adapter)}
          </Text>
        </Stack>
        <Group gap="xs" wrap="nowrap">
          {canPin && <PinSwitch adapter={adapter} />}
          {canWrite && <AdapterMenu adapter={adapter} />}
        </Group>
      </Group>
      {versions.length > 0 && (
        <Group gap="xs" mt={4} ml={-8}>
          <ToggleButton open={open} onToggle={toggle}>
            {plural(versions.length, "version")}
          </ToggleButton>
          <Button
            component={Link}
            to={`/adapters/${adapter.id}/evaluations`}
            variant="subtle"
            color="gray"
            size="compact-sm"
            leftSection={<IconScale size={14} aria-hidden />}
          >
            Evaluations
          </Button>
        </Group>
      )}
      {versions
        .filter(({ id, state }) => state === "uploading" && id !== sending)
        .map((version) => (
          <UnfinishedVersion key={version.id} version={version} canWrite={canWrite} />
        ))}
      {newest?.state === "rejected" && newest.report && (
        <CheckReport report={newest.report} number={newest.number} />
      )}
      {open && <VersionTable adapter={adapter} versions={versions} canWrite={canWrite} />}
    </Card>
  );
}

/** The one that most of the traffic goes to. */
function servedVersion(adapter: Adapter): Version | undefined {
  const splits = adapter.alias?.splits ?? [];
  const main = splits.toSorted((a, b) => b.weight - a.weight)[0];
  return readyVersions(adapter).find(({ number }) => number === main?.version);
}

function ServedPlace({ version }: { version: Version | undefined }) {
  const places = usePlaces();
  const place = version && places.data?.get(version.id);
  return place ? <PlaceBadge place={place} /> : null;
}

function summaryOf(adapter: Adapter): string {
  const serving = servingText(adapter);
  const shown = servedVersion(adapter);
  const facts = [
    serving ? `serves ${serving}` : "serves nothing yet",
    shown?.rank ? `rank ${shown.rank}` : null,
    shown ? formatBytes(shown.size_bytes) : null,
    `created ${formatAgo(adapter.created_at)}`,
  ];
  return facts.filter(Boolean).join(" · ");
}
