import { Button, Group, SegmentedControl, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconBuildingCommunity, IconPlus } from "@tabler/icons-react";
import type { Tenant } from "../api/types";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { SearchField } from "../shared/SearchField";
import { useUrlState } from "../shared/useUrlState";
import { NewTenantModal } from "./NewTenantModal";
import { PricesCard } from "./PricesCard";
import { useTenants } from "./queries";
import { TenantTable } from "./TenantTable";

const NAMES = ["search", "state"] as const;
const STATES = [
  { value: "", label: "All" },
  { value: "active", label: "Active" },
  { value: "suspended", label: "Suspended" },
];

export function Component() {
  const [creating, create] = useDisclosure(false);
  return (
    <>
      <PageHeader
        title="Tenants"
        action={
          <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={create.open}>
            New tenant
          </Button>
        }
      >
        Who may use the platform, how much, and at what price.
      </PageHeader>
      <Stack gap="lg">
        <TenantList />
        <PricesCard />
      </Stack>
      <NewTenantModal opened={creating} onClose={create.close} />
    </>
  );
}

function TenantList() {
  const tenants = useTenants();
  const [{ search, state }, change] = useUrlState(NAMES);
  if (tenants.isPending) return <LoadingCards height={48} />;
  if (tenants.isError) {
    return (
      <ErrorState
        error={tenants.error}
        what="The tenants could not be read"
        onRetry={() => tenants.refetch()}
      />
    );
  }
  if (tenants.data.length === 0) {
    return (
      <EmptyState icon={IconBuildingCommunity} title="No tenants yet">
        Create one together with the person who will own it.
      </EmptyState>
    );
  }
  const found = tenants.data.filter((tenant) => isWanted(tenant, search, state));
  return (
    <Stack>
      <Group gap="sm">
        <SearchField
          label="A tenant's name"
          value={search}
          onSearch={(text) => change({ search: text })}
        />
        <SegmentedControl
          aria-label="State"
          data={STATES}
          value={STATES.some(({ value }) => value === state) ? state : ""}
          onChange={(value) => change({ state: value })}
        />
      </Group>
      {found.length > 0 ? (
        <TenantTable tenants={found} />
      ) : (
        <EmptyState icon={IconBuildingCommunity} title="No such tenant">
          Look for a shorter part of the name, or in another state.
        </EmptyState>
      )}
    </Stack>
  );
}

function isWanted({ name, slug, is_active }: Tenant, search: string, state: string): boolean {
  const part = search.toLowerCase();
  const hasState = (state !== "active" || is_active) && (state !== "suspended" || !is_active);
  return hasState && (name.toLowerCase().includes(part) || slug.includes(part));
}
