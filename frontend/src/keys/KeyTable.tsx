import { Badge, Card, Code, Group, Table, Text, Tooltip, VisuallyHidden } from "@mantine/core";
import type { ApiKey } from "../api/types";
import { formatAgo, formatDate, formatDateTime } from "../shared/time";
import { KeyActions } from "./KeyActions";
import { reachWords } from "./reach";
import { isInGrace, type KeyState, keyState } from "./state";

const COLORS: Record<KeyState, string> = { active: "veneer", expired: "gray", revoked: "gray" };

export function KeyTable({ keys }: { keys: ApiKey[] }) {
  return (
    <Card withBorder padding={0}>
      <Table.ScrollContainer minWidth={860}>
        <Table verticalSpacing="sm" horizontalSpacing="md" fz="sm">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Name</Table.Th>
              <Table.Th>Key</Table.Th>
              <Table.Th>Scopes</Table.Th>
              <Table.Th>Last used</Table.Th>
              <Table.Th>Expires</Table.Th>
              <Table.Th>State</Table.Th>
              <Table.Th>
                <VisuallyHidden>Actions</VisuallyHidden>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {keys.map((key) => (
              <KeyRow key={key.id} apiKey={key} />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Card>
  );
}

function KeyRow({ apiKey }: { apiKey: ApiKey }) {
  const state = keyState(apiKey);
  const held = reachWords(apiKey);
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600}>
          {apiKey.name}
        </Text>
        <Text size="xs" c="dimmed">
          {`issued ${formatDate(apiKey.created_at)}`}
        </Text>
      </Table.Td>
      <Table.Td>
        <Code style={{ whiteSpace: "nowrap" }}>{`vnr_${apiKey.prefix}…${apiKey.last4}`}</Code>
        {state === "active" && isInGrace(apiKey) && (
          <Text size="xs" c="dimmed">
            {`the text before works until ${formatDateTime(apiKey.old_until ?? "")}`}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Group gap={4}>
          {apiKey.scopes.map((scope) => (
            <Badge key={scope} variant="default" tt="none" size="sm">
              {scope}
            </Badge>
          ))}
        </Group>
        {held && (
          <Text size="xs" c="dimmed" maw={280}>
            {held}
          </Text>
        )}
      </Table.Td>
      <Table.Td>{apiKey.last_used_at ? <When iso={apiKey.last_used_at} /> : "never"}</Table.Td>
      <Table.Td>{apiKey.expires_at ? <When iso={apiKey.expires_at} /> : "never"}</Table.Td>
      <Table.Td>
        <Badge variant="light" color={COLORS[state]} tt="none">
          {state}
        </Badge>
      </Table.Td>
      <Table.Td ta="right">{state === "active" && <KeyActions apiKey={apiKey} />}</Table.Td>
    </Table.Tr>
  );
}

function When({ iso }: { iso: string }) {
  return (
    <Tooltip label={formatDateTime(iso)}>
      <span>{formatAgo(iso)}</span>
    </Tooltip>
  );
}
