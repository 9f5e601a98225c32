import { Button, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconBuildingCommunity, IconPlus } from "@tabler/icons-react";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { NewTenantModal } from "./NewTenantModal";
import { PricesCard } from "./PricesCard";
import { useTenants } from "./queries";
import { TenantTable } from "./TenantTable";

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
  return <TenantTable tenants={tenants.data} />;
}
