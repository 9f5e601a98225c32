import { Button, Group, Select, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconKey, IconPlus } from "@tabler/icons-react";
import { useTenant } from "../session/context";
import { ListStates } from "../shared/ListStates";
import { LoadMore } from "../shared/LoadMore";
import { PageHeader } from "../shared/PageHeader";
import { SearchField } from "../shared/SearchField";
import { useUrlState } from "../shared/useUrlState";
import { CallExample } from "./CallExample";
import { IssueKeyModal } from "./IssueKeyModal";
import { KeyTable } from "./KeyTable";
import { type KeyFilter, useKeys } from "./queries";
import { useKeySpend } from "./useKeySpend";

const NAMES = ["q", "state"] as const;
const STATES = [
  { value: "", label: "Any state" },
  { value: "active", label: "Active" },
  { value: "expired", label: "Expired" },
  { value: "revoked", label: "Revoked" },
] as const;

export function Component() {
  const { session } = useTenant();
  const [issuing, issue] = useDisclosure(false);
  const [values, change] = useUrlState(NAMES);
  const issueButton = (
    <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={issue.open}>
      Issue a key
    </Button>
  );
  return (
    <>
      <PageHeader title="API keys" action={issueButton}>
        Programs use a key to call your adapters. A key is shown once, when it is issued.
      </PageHeader>
      <Stack>
        <Group gap="sm">
          <SearchField label="Search by name" value={values.q} onSearch={(q) => change({ q })} />
          <Select
            aria-label="State"
            data={STATES}
            value={values.state}
            onChange={(state) => change({ state: state ?? "" })}
            allowDeselect={false}
            w={150}
          />
        </Group>
        <KeyList filter={filterOf(values)} />
      </Stack>
      <CallExample doorUrl={session.door_url} model={session.base_model.name} />
      <IssueKeyModal opened={issuing} onClose={issue.close} />
    </>
  );
}

function filterOf({ q, state }: Record<"q" | "state", string>): KeyFilter {
  const known = STATES.map(({ value }) => value).find((value) => value === state);
  return { ...(q ? { q } : {}), ...(known ? { state: known } : {}) };
}

function KeyList({ filter }: { filter: KeyFilter }) {
  const { list, rows } = useKeys(filter);
  const spend = useKeySpend();
  const isFiltered = filter.q !== undefined || filter.state !== undefined;
  const nothing = isFiltered
    ? { icon: IconKey, title: "No key like that", text: "Search for less, or for any state." }
    : {
        icon: IconKey,
        title: "No keys yet",
        text: "Issue one for each program: then you can see what it uses, and revoke it alone.",
      };
  return (
    <ListStates query={list} isEmpty={rows?.length === 0} what="The keys" nothing={nothing}>
      <KeyTable keys={rows ?? []} spend={spend} />
      <LoadMore shown={rows?.length ?? 0} what="key" list={list} />
    </ListStates>
  );
}
