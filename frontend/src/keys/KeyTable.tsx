import { Anchor, Badge, Code, Group, Table, Text, Tooltip } from "@mantine/core";
import { Link } from "react-router";
import type { ApiKey, UsageGroup } from "../api/types";
import { ACTIONS, type Column, DataTable } from "../shared/DataTable";
import { formatExactMoney, formatMoney } from "../shared/money";
import { plural } from "../shared/numbers";
import { formatAgo, formatDate, formatDateTime } from "../shared/time";
import { KeyActions } from "./KeyActions";
import { reachWords } from "./reach";
import { isInGrace, type KeyState, keyState } from "./state";

const COLORS: Record<KeyState, string> = { active: "veneer", expired: "gray", revoked: "gray" };

const COLUMNS: (string | Column)[] = [
  "Name",
  { label: "Key", wide: true },
  { label: "Scopes", wide: true },
  { label: "This month", right: true },
  { label: "Last used", wide: true },
  { label: "Expires", wide: true },
  "State",
  ACTIONS,
];

interface Props {
  keys: ApiKey[];
  /** By key id; undefined while it is not known. */
  spend: Map<string, UsageGroup> | undefined;
}

export function KeyTable({ keys, spend }: Props) {
  return (
    <DataTable columns={COLUMNS} minWidth={960}>
      {keys.map((key) => (
        <KeyRow key={key.id} apiKey={key} spend={spend} />
      ))}
    </DataTable>
  );
}

function KeyRow({ apiKey, spend }: { apiKey: ApiKey; spend: Props["spend"] }) {
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
        {apiKey.scopes.length === 0 && (
          <Text size="xs" c="dimmed">
            none
          </Text>
        )}
        {held && (
          <Text size="xs" c="dimmed" maw={280}>
            {held}
          </Text>
        )}
      </Table.Td>
      <Table.Td ta="right">
        {spend && <Spend apiKey={apiKey} used={spend.get(apiKey.id)} />}
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

function Spend({ apiKey, used }: { apiKey: ApiKey; used: UsageGroup | undefined }) {
  if (!used) return "nothing";
  return (
    <>
      <Tooltip label={formatExactMoney(used.amount)}>
        <Anchor
          component={Link}
          to={`/usage?range=month&by=key&only=${apiKey.id}`}
          size="sm"
          className="figures"
          aria-label={`Usage of ${apiKey.name} this month: ${formatMoney(used.amount)}`}
        >
          {formatMoney(used.amount)}
        </Anchor>
      </Tooltip>
      <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
        {plural(used.requests, "request")}
      </Text>
    </>
  );
}

function When({ iso }: { iso: string }) {
  return (
    <Tooltip label={formatDateTime(iso)}>
      <span style={{ whiteSpace: "nowrap" }}>{formatAgo(iso)}</span>
    </Tooltip>
  );
}
