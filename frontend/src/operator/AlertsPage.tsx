import { Anchor, Code, Group, SegmentedControl, Select, Stack, Table } from "@mantine/core";
import { IconBellCheck } from "@tabler/icons-react";
import { Link } from "react-router";
import { bodyOf } from "../api/client";
import { useWorkspace } from "../session/context";
import { DataTable } from "../shared/DataTable";
import { ListStates } from "../shared/ListStates";
import { LoadMore } from "../shared/LoadMore";
import { PageHeader } from "../shared/PageHeader";
import { SearchField } from "../shared/SearchField";
import { formatDateTime } from "../shared/time";
import { useCursorList } from "../shared/useCursorList";
import { useUrlState } from "../shared/useUrlState";
import { alertWords, KINDS, kindName } from "./alertWords";

const NAMES = ["of", "kind", "search"] as const;
const POLL_MS = 30_000;
const NOTHING = {
  icon: IconBellCheck,
  title: "No alert",
  text: "Each is raised once, when it happens, and stays here.",
};

export function Component() {
  const [{ of, kind, search }, change] = useUrlState(NAMES);
  const isTenants = of === "tenants";
  return (
    <>
      <PageHeader title="Alerts">
        What the platform found by itself: what is yours to put right, and what tenants were told.
      </PageHeader>
      <Stack>
        <Group gap="sm">
          <SegmentedControl
            aria-label="Whose"
            data={[
              { value: "", label: "The platform's" },
              { value: "tenants", label: "The tenants'" },
            ]}
            value={isTenants ? "tenants" : ""}
            onChange={(value) => change({ of: value, kind: "", search: "" })}
          />
          {isTenants && (
            <>
              <Select
                aria-label="Kind of alert"
                placeholder="All kinds"
                data={KINDS.filter(({ value }) => value !== "discrepancy.opened")}
                value={kind || null}
                onChange={(value) => change({ kind: value ?? "" })}
                clearable
                w={190}
              />
              <SearchField
                label="A tenant's short name"
                value={search}
                onSearch={(text) => change({ search: text })}
              />
            </>
          )}
        </Group>
        {isTenants ? <TenantAlerts kind={kind} search={search} /> : <PlatformAlerts />}
      </Stack>
    </>
  );
}

function PlatformAlerts() {
  const { api } = useWorkspace();
  const { list, rows } = useCursorList({
    queryKey: ["operator", "alerts"],
    fetchPage: (query) => bodyOf(api.GET("/api/v1/operator/alerts", { params: { query } })),
    refetchInterval: POLL_MS,
  });
  return (
    <ListStates query={list} isEmpty={rows?.length === 0} what="The alerts" nothing={NOTHING}>
      <DataTable columns={["When", "Kind", "What"]} minWidth={560}>
        {rows?.map((alert) => (
          <Table.Tr key={alert.id}>
            <Table.Td style={{ whiteSpace: "nowrap" }}>{formatDateTime(alert.created_at)}</Table.Td>
            <Table.Td>
              {alert.kind === "discrepancy.opened" ? (
                <Anchor component={Link} to="/discrepancies" size="sm">
                  {kindName(alert.kind)}
                </Anchor>
              ) : (
                kindName(alert.kind)
              )}
            </Table.Td>
            <Table.Td>{alertWords(alert.kind, alert.data)}</Table.Td>
          </Table.Tr>
        ))}
      </DataTable>
      <LoadMore shown={rows?.length ?? 0} what="alert" list={list} />
    </ListStates>
  );
}

function TenantAlerts({ kind, search }: { kind: string; search: string }) {
  const { api } = useWorkspace();
  const filter = {
    ...(kind ? { kind: kind as (typeof KINDS)[number]["value"] as never } : {}),
    ...(search ? { search } : {}),
  };
  const { list, rows } = useCursorList({
    queryKey: ["operator", "tenant-alerts", kind, search],
    fetchPage: (page) =>
      bodyOf(
        api.GET("/api/v1/operator/tenant-alerts", { params: { query: { ...filter, ...page } } }),
      ),
    refetchInterval: POLL_MS,
  });
  return (
    <ListStates query={list} isEmpty={rows?.length === 0} what="The alerts" nothing={NOTHING}>
      <DataTable columns={["When", "Tenant", { label: "Kind", wide: true }, "What"]} minWidth={640}>
        {rows?.map((alert) => (
          <Table.Tr key={alert.id}>
            <Table.Td style={{ whiteSpace: "nowrap" }}>{formatDateTime(alert.created_at)}</Table.Td>
            <Table.Td>
              <Code>{alert.tenant}</Code>
            </Table.Td>
            <Table.Td>{kindName(alert.kind)}</Table.Td>
            <Table.Td>{alertWords(alert.kind, alert.data)}</Table.Td>
          </Table.Tr>
        ))}
      </DataTable>
      <LoadMore shown={rows?.length ?? 0} what="alert" list={list} />
    </ListStates>
  );
}
