import {
  Accordion,
  Badge,
  Button,
  Code,
  Group,
  SegmentedControl,
  Stack,
  Text,
} from "@mantine/core";
import type { Attempt, Delivery } from "../api/types";
import { tell } from "../shared/confirm";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { LoadMore } from "../shared/LoadMore";
import { formatMilliseconds, plural } from "../shared/numbers";
import { formatAgo, formatDateTime } from "../shared/time";
import { kindWords } from "./kinds";
import { type DeliveryFilter, useDeliveries, useResend } from "./queries";

const STATES = [
  { value: "any", label: "All" },
  { value: "pending", label: "Waiting" },
  { value: "delivered", label: "Delivered" },
  { value: "failed", label: "Given up" },
];
const LOOKS = {
  pending: { color: "blue", text: "waiting" },
  delivered: { color: "veneer", text: "delivered" },
  failed: { color: "red", text: "given up" },
} as const;

interface Props {
  endpointId: string;
  state: string;
  onState: (state: string) => void;
}

function filterOf(state: string): DeliveryFilter {
  return (STATES.find(({ value }) => value === state)?.value ?? "any") as DeliveryFilter;
}

/** What was sent to one address, newest first, with every attempt. */
export function Deliveries({ endpointId, state, onState }: Props) {
  const filter = filterOf(state);
  const { list, rows } = useDeliveries(endpointId, filter);
  return (
    <Stack mt="md" gap="sm">
      <SegmentedControl
        size="xs"
        w="fit-content"
        aria-label="State of the deliveries"
        data={STATES}
        value={filter}
        onChange={(value) => onState(value === "any" ? "" : value)}
      />
      {list.isError && (
        <ErrorState
          error={list.error}
          what="The deliveries could not be read"
          onRetry={() => list.refetch()}
        />
      )}
      {list.isPending && <LoadingCards count={2} height={44} />}
      {rows?.length === 0 && (
        <Text size="sm" c="dimmed">
          Nothing of that kind was sent to it yet. A test shows whether it works.
        </Text>
      )}
      {rows && rows.length > 0 && (
        <Accordion variant="separated" chevronPosition="left">
          {rows.map((delivery) => (
            <DeliveryItem key={delivery.id} delivery={delivery} />
          ))}
        </Accordion>
      )}
      {rows && <LoadMore shown={rows.length} what="delivery" many="deliveries" list={list} />}
    </Stack>
  );
}

function DeliveryItem({ delivery }: { delivery: Delivery }) {
  const { color, text } = LOOKS[delivery.state];
  return (
    <Accordion.Item value={String(delivery.id)}>
      <Accordion.Control>
        <Group gap="sm">
          <Badge variant="light" color={color} tt="none">
            {text}
          </Badge>
          <Text size="sm">{kindWords(delivery.alert.kind)}</Text>
          <Text size="xs" c="dimmed">
            {`${formatAgo(delivery.created_at)} · ${plural(delivery.attempts.length, "attempt")}`}
          </Text>
        </Group>
      </Accordion.Control>
      <Accordion.Panel>
        <Details delivery={delivery} />
      </Accordion.Panel>
    </Accordion.Item>
  );
}

function Details({ delivery }: { delivery: Delivery }) {
  const resend = useResend();
  const sendAgain = () =>
    tell(
      resend.mutateAsync(delivery.id),
      "It is sent again, under the same id.",
      "It was not sent again",
    );
  return (
    <Stack gap="sm">
      <Code block fz="xs" tabIndex={0}>
        {JSON.stringify(delivery.alert.data, null, 2)}
      </Code>
      {delivery.attempts.map((attempt, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: attempts are only ever added at the end
        <AttemptLine key={index} attempt={attempt} number={index + 1} />
      ))}
      <Group justify="space-between">
        <Text size="xs" c="dimmed">
          {delivery.next_at ? dueWords(delivery.next_at) : `webhook-id ${delivery.alert.id}`}
        </Text>
        <Button size="xs" variant="default" onClick={sendAgain} loading={resend.isPending}>
          Send again
        </Button>
      </Group>
    </Stack>
  );
}

function dueWords(at: string): string {
  const isDue = new Date(at).getTime() <= Date.now();
  return isDue ? "an attempt is due now" : `the next attempt is due ${formatAgo(at)}`;
}

function AttemptLine({ attempt, number }: { attempt: Attempt; number: number }) {
  const outcome = attempt.status === null ? attempt.error : `answered ${attempt.status}`;
  return (
    <div>
      <Text size="sm" className="figures">
        {`${number}. ${formatDateTime(attempt.at)}: ${outcome ?? "no answer"}, after ${formatMilliseconds(attempt.duration_ms)}`}
      </Text>
      {attempt.excerpt && (
        <Code block fz="xs" mt={4} mah={120} tabIndex={0} style={{ overflow: "auto" }}>
          {attempt.excerpt}
        </Code>
      )}
    </div>
  );
}
