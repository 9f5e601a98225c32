import { Group, Select, Stack } from "@mantine/core";
import { IconStack2 } from "@tabler/icons-react";
import { useState } from "react";
import type { Adapter } from "../api/types";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { ListStates } from "../shared/ListStates";
import { LoadMore } from "../shared/LoadMore";
import { PageHeader } from "../shared/PageHeader";
import { SearchField } from "../shared/SearchField";
import { useUrlState } from "../shared/useUrlState";
import { AdapterCard } from "./AdapterCard";
import { type AdapterFilter, useAdapterList } from "./queries";
import { SharedWithYou } from "./SharedWithYou";
import { UploadPanel } from "./UploadPanel";

const NAMES = ["q", "state"] as const;
const STATES: { value: Adapter["state"] | ""; label: string }[] = [
  { value: "", label: "Any state" },
  { value: "ready", label: "Ready" },
  { value: "checking", label: "Checking" },
  { value: "uploading", label: "Uploading" },
  { value: "rejected", label: "Rejected" },
];

export function Component() {
  const { membership, session } = useTenant();
  const canWrite = membership !== null && roleCan(membership.role, "adapters:write");
  const canPin = membership !== null && roleCan(membership.role, "adapters:pin");
  const [filter, change] = useUrlState(NAMES);
  const [sending, setSending] = useState<string | null>(null);
  return (
    <>
      <PageHeader title="Adapters">
        {`LoRA fine-tunes of ${session.base_model.name}. Each one answers under its own model name.`}
      </PageHeader>
      <Stack>
        {canWrite && <UploadPanel onSending={setSending} />}
        <Group gap="sm">
          <SearchField label="Search by name" value={filter.q} onSearch={(q) => change({ q })} />
          <Select
            aria-label="State of the newest version"
            data={STATES}
            value={filter.state}
            onChange={(state) => change({ state: state ?? "" })}
            allowDeselect={false}
            w={150}
          />
        </Group>
        <AdapterList
          filter={filterOf(filter)}
          sending={sending}
          canWrite={canWrite}
          canPin={canPin}
        />
        <SharedWithYou canWrite={canWrite} />
      </Stack>
    </>
  );
}

function filterOf({ q, state }: Record<"q" | "state", string>): AdapterFilter {
  const known = STATES.find(({ value }) => value !== "" && value === state)?.value;
  return { ...(q ? { q } : {}), ...(known ? { state: known } : {}) };
}

interface ListProps {
  filter: AdapterFilter;
  /** The version that this page is uploading. */
  sending: string | null;
  canWrite: boolean;
  canPin: boolean;
}

function AdapterList({ filter, sending, canWrite, canPin }: ListProps) {
  const { list, rows } = useAdapterList(filter);
  return (
    <ListStates
      query={list}
      isEmpty={rows?.length === 0}
      what="The adapters"
      nothing={nothingIn(filter, canWrite)}
    >
      {rows?.map((adapter) => (
        <AdapterCard
          key={adapter.id}
          adapter={adapter}
          sending={sending}
          canWrite={canWrite}
          canPin={canPin}
        />
      ))}
      <LoadMore shown={rows?.length ?? 0} what="adapter" list={list} onward />
    </ListStates>
  );
}

function nothingIn(filter: AdapterFilter, canWrite: boolean) {
  if (filter.q || filter.state) {
    return {
      icon: IconStack2,
      title: "No adapter like that",
      text: "Search for less, or for any state.",
    };
  }
  const text = canWrite
    ? "Train one with PEFT, then drop the folder that save_pretrained wrote into the field above."
    : "Nobody in this tenant has uploaded an adapter. Your role may look, not upload.";
  return { icon: IconStack2, title: "No adapters yet", text };
}
