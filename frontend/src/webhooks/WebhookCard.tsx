import { Alert, Badge, Button, Card, Group, Stack, Text, Title } from "@mantine/core";
import { IconPlugConnectedX } from "@tabler/icons-react";
import type { Webhook } from "../api/types";
import { tell } from "../shared/confirm";
import { plural } from "../shared/numbers";
import { ToggleButton } from "../shared/ToggleButton";
import { formatAgo, formatDateTime } from "../shared/time";
import { useUrlState } from "../shared/useUrlState";
import { Deliveries } from "./Deliveries";
import { kindWords } from "./kinds";
import { useChangeWebhook } from "./queries";
import { WebhookMenu } from "./WebhookMenu";

const NAMES = ["webhook", "state"] as const;

/** One address: what it gets, how it does, and on a click what was sent to it. */
export function WebhookCard({ webhook }: { webhook: Webhook }) {
  const [shown, show] = useUrlState(NAMES);
  const open = shown.webhook === webhook.id;
  const toggle = () => show({ webhook: open ? "" : webhook.id, state: "" });
  return (
    <Card withBorder padding="md" component="article" aria-label={`Webhook ${webhook.url}`}>
      <Group justify="space-between" align="flex-start">
        <Stack gap={4} miw={0}>
          <Group gap="xs">
            <Title order={2} size="h4" style={{ overflowWrap: "anywhere" }}>
              {webhook.url}
            </Title>
            <Health webhook={webhook} />
          </Group>
          <Text size="sm" c="dimmed">
            {webhook.kinds.length === 0 ? "Everything" : webhook.kinds.map(kindWords).join(" · ")}
          </Text>
          <Text size="xs" c="dimmed">{`added ${formatAgo(webhook.created_at)}`}</Text>
        </Stack>
        <Group gap="xs" wrap="nowrap">
          <ToggleButton open={open} onToggle={toggle}>
            Deliveries
          </ToggleButton>
          <WebhookMenu webhook={webhook} />
        </Group>
      </Group>
      {webhook.disabled_at && <SwitchedOff webhook={webhook} since={webhook.disabled_at} />}
      {open && (
        <Deliveries
          endpointId={webhook.id}
          state={shown.state}
          onState={(state) => show({ state })}
        />
      )}
    </Card>
  );
}

function Health({ webhook }: { webhook: Webhook }) {
  if (webhook.disabled_at) {
    return (
      <Badge variant="light" color="red" tt="none">
        switched off
      </Badge>
    );
  }
  if (webhook.failures > 0) {
    return (
      <Badge variant="light" color="orange" tt="none">
        {plural(webhook.failures, "failure")} in a row
      </Badge>
    );
  }
  return (
    <Badge variant="light" tt="none">
      on
    </Badge>
  );
}

/** Nothing is sent until somebody says so; what waited is sent then. */
function SwitchedOff({ webhook, since }: { webhook: Webhook; since: string }) {
  const change = useChangeWebhook();
  const switchOn = () =>
    tell(
      change.mutateAsync({ id: webhook.id, enabled: true }),
      "The webhook is on again. What waited is sent now.",
      "The webhook was not switched on",
    );
  return (
    <Alert
      mt="md"
      color="red"
      role="group"
      icon={<IconPlugConnectedX aria-hidden />}
      title={`Switched off ${formatDateTime(since)}: ${webhook.disabled_reason ?? "no reason is known"}`}
    >
      <Group justify="space-between">
        <Text size="sm">Nothing is sent to it. Mend the address, then switch it on.</Text>
        <Button size="xs" variant="default" onClick={switchOn} loading={change.isPending}>
          Switch on
        </Button>
      </Group>
    </Alert>
  );
}
