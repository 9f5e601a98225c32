import { ActionIcon, Button, Card, Group, Menu, Stack, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import {
  IconArrowsSplit2,
  IconChevronDown,
  IconChevronUp,
  IconDots,
  IconTrash,
} from "@tabler/icons-react";
import type { Adapter } from "../api/types";
import { CopyIcon } from "../shared/CopyText";
import { confirmDanger, notifyDone, notifyFailed } from "../shared/confirm";
import { formatBytes, plural } from "../shared/numbers";
import { formatAgo } from "../shared/time";
import { AliasModal } from "./AliasModal";
import { CheckReport } from "./CheckReport";
import { PinSwitch } from "./PinSwitch";
import { useDeleteAdapter } from "./queries";
import { StateBadge } from "./StateBadge";
import { VersionTable } from "./VersionTable";
import { newestFirst, readyVersions, servingText } from "./versions";

interface Props {
  adapter: Adapter;
  canWrite: boolean;
  canPin: boolean;
}

export function AdapterCard({ adapter, canWrite, canPin }: Props) {
  const [open, { toggle }] = useDisclosure(false);
  const versions = newestFirst(adapter);
  const newest = versions[0];
  return (
    <Card withBorder padding="md" component="article" aria-label={`Adapter ${adapter.name}`}>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <Stack gap={4} miw={0}>
          <Group gap="xs">
            <Title order={2} size="h4" style={{ overflowWrap: "anywhere" }}>
              {adapter.name}
            </Title>
            <CopyIcon value={adapter.name} label="Copy the model name" />
            <StateBadge state={adapter.state} />
          </Group>
          <Text size="sm" c="dimmed">
            {summaryOf(adapter)}
          </Text>
        </Stack>
        <Group gap="xs" wrap="nowrap">
          {canPin && <PinSwitch adapter={adapter} />}
          {versions.length > 0 && (
            <Button
              variant="subtle"
              color="gray"
              size="compact-sm"
              onClick={toggle}
              aria-expanded={open}
              rightSection={open ? <IconChevronUp size={14} /> : <IconChevronDown size={14} />}
            >
              {plural(versions.length, "version")}
            </Button>
          )}
          {canWrite && <AdapterMenu adapter={adapter} />}
        </Group>
      </Group>
      {newest?.state === "rejected" && newest.report && (
        <CheckReport report={newest.report} number={newest.number} />
      )}
      {open && <VersionTable adapter={adapter} versions={versions} canWrite={canWrite} />}
    </Card>
  );
}

function summaryOf(adapter: Adapter): string {
  const serving = servingText(adapter);
  const shown = readyVersions(adapter).find(
    ({ number }) => number === adapter.alias?.splits[0]?.version,
  );
  const facts = [
    serving ? `serves ${serving}` : "serves nothing yet",
    shown?.rank ? `rank ${shown.rank}` : null,
    shown ? formatBytes(shown.size_bytes) : null,
    `created ${formatAgo(adapter.created_at)}`,
  ];
  return facts.filter(Boolean).join(" · ");
}

function AdapterMenu({ adapter }: { adapter: Adapter }) {
  const [aliasOpen, alias] = useDisclosure(false);
  const remove = useDeleteAdapter();
  const confirmRemove = () =>
    confirmDanger({
      title: `Delete ${adapter.name}?`,
      text: `Requests for the model ${adapter.name} will be refused from now on. Its usage stays in the books.`,
      confirm: "Delete the adapter",
      onConfirm: () =>
        remove.mutate(adapter.id, {
          onSuccess: () => notifyDone(`${adapter.name} is deleted.`),
          onError: (error) => notifyFailed(`${adapter.name} was not deleted`, error),
        }),
    });
  return (
    <>
      <Menu position="bottom-end" width={200}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${adapter.name}`}>
            <IconDots size={18} aria-hidden />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<IconArrowsSplit2 size={16} aria-hidden />}
            disabled={readyVersions(adapter).length === 0}
            onClick={alias.open}
          >
            Choose what serves
          </Menu.Item>
          <Menu.Item
            color="red"
            leftSection={<IconTrash size={16} aria-hidden />}
            onClick={confirmRemove}
          >
            Delete
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <AliasModal adapter={adapter} opened={aliasOpen} onClose={alias.close} />
    </>
  );
}
