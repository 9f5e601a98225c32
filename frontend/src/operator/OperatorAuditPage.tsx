import { Group, Select, Stack, TextInput } from "@mantine/core";
import { IconHistory } from "@tabler/icons-react";
import { bodyOf } from "../api/client";
import { AuditTable } from "../audit/AuditTable";
import { KINDS } from "../audit/words";
import { useWorkspace } from "../session/context";
import { ListStates } from "../shared/ListStates";
import { LoadMore } from "../shared/LoadMore";
import { PageHeader } from "../shared/PageHeader";
import { useCursorList } from "../shared/useCursorList";
import { useUrlState } from "../shared/useUrlState";
import { useTenants } from "./queries";

const NAMES = ["tenant", "action", "target"] as const;
const OF_OPERATORS = [
  { value: "engine.", label: "Engines" },
  { value: "person.", label: "People" },
  { value: "price.", label: "Prices" },
  { value: "tenant.", label: "Tenants" },
];
const NOTHING = {
  icon: IconHistory,
  title: "Nothing of that kind yet",
  text: "Deeds appear here the moment they are done.",
};

export function Component() {
  const [filter, change] = useUrlState(NAMES);
  const tenants = useTenants();
  const nameOf = (id: string | null) =>
    tenants.data?.find((tenant) => tenant.id === id)?.name ?? id ?? "the platform";
  return (
    <>
      <PageHeader title="Audit of all">
        Who did what, in every tenant and on the platform. Nothing here can be changed or removed.
      </PageHeader>
      <Stack>
        <Group gap="sm">
          <Select
            aria-label="Tenant"
            placeholder="All tenants"
            data={(tenants.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
            value={filter.tenant || null}
            onChange={(tenant) => change({ tenant: tenant ?? "" })}
            searchable
            clearable
            w={200}
          />
          <Select
            aria-label="Kind of deed"
            data={kinds()}
            value={filter.action}
            onChange={(action) => change({ action: action ?? "" })}
            allowDeselect={false}
            w={170}
          />
          <TextInput
            aria-label="About"
            placeholder="About: key_… or usr_…"
            value={filter.target}
            onChange={(event) => change({ target: event.currentTarget.value.trim() })}
            w={240}
          />
        </Group>
        <Deeds filter={filter} nameOf={nameOf} />
      </Stack>
    </>
  );
}

function kinds() {
  const known = new Set(OF_OPERATORS.map(({ value }) => value));
  return [...KINDS.filter(({ value }) => !known.has(value)), ...OF_OPERATORS];
}

type Filter = Record<(typeof NAMES)[number], string>;

function Deeds({ filter, nameOf }: { filter: Filter; nameOf: (id: string | null) => string }) {
  const { api } = useWorkspace();
  const asked = Object.fromEntries(Object.entries(filter).filter(([, value]) => value));
  const { list, rows } = useCursorList({
    queryKey: ["operator", "audit", filter],
    fetchPage: (page) =>
      bodyOf(api.GET("/api/v1/operator/audit", { params: { query: { ...asked, ...page } } })),
  });
  return (
    <ListStates query={list} isEmpty={rows?.length === 0} what="The log" nothing={NOTHING}>
      <AuditTable rows={rows ?? []} tenantName={nameOf} />
      <LoadMore shown={rows?.length ?? 0} what="deed" list={list} onward />
    </ListStates>
  );
}
