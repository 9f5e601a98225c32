import { Button, Card, Group, Table, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Price, Tenant } from "../api/types";
import { type Column, DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatMoney } from "../shared/money";
import { formatDateTime } from "../shared/time";
import { PriceModal } from "./PriceModal";
import { usePrices, useTenants } from "./queries";

const COLUMNS: (string | Column)[] = [
  "Base model",
  "For",
  { label: "Input", right: true },
  { label: "Cached input", right: true, wide: true },
  { label: "Output", right: true },
  { label: "Since", wide: true },
];

/** Prices in force and to come; past ones stay pinned to the usage they priced. */
export function PricesCard() {
  const [setting, set] = useDisclosure(false);
  const prices = usePrices();
  const tenants = useTenants();
  if (prices.isPending) return <LoadingCards count={1} height={140} />;
  if (prices.isError) {
    return <ErrorState error={prices.error} what="The prices could not be read" />;
  }
  const current = prices.data.filter(
    ({ effective_to: end }) => end === null || new Date(end) > new Date(),
  );
  return (
    <Card withBorder padding={0} component="section" aria-label="Prices">
      <Group justify="space-between" p="md">
        <Title order={2}>Prices per 1M tokens</Title>
        <Button size="xs" variant="default" onClick={set.open}>
          Set a price
        </Button>
      </Group>
      {current.length === 0 ? (
        <Text px="md" pb="md" size="sm" c="dimmed">
          No price is set, so requests are refused. Set one for the base model.
        </Text>
      ) : (
        <PriceTable prices={current} tenants={tenants.data ?? []} />
      )}
      <PriceModal opened={setting} onClose={set.close} tenants={tenants.data ?? []} />
    </Card>
  );
}

function scopeOf(price: Price, tenants: Tenant[]): string {
  const tenant = tenants.find(({ id }) => id === price.tenant_id)?.name ?? price.tenant_id;
  return [tenant ?? "everybody", price.adapter_id].filter(Boolean).join(" · ");
}

function PriceTable({ prices, tenants }: { prices: Price[]; tenants: Tenant[] }) {
  return (
    <DataTable columns={COLUMNS} minWidth={680} bare>
      {prices.map((price) => (
        <Table.Tr key={price.id}>
          <Table.Td>{price.base_model}</Table.Td>
          <Table.Td>{scopeOf(price, tenants)}</Table.Td>
          <Table.Td ta="right">{formatMoney(price.input)}</Table.Td>
          <Table.Td ta="right">{formatMoney(price.cached_input)}</Table.Td>
          <Table.Td ta="right">{formatMoney(price.output)}</Table.Td>
          <Table.Td>{formatDateTime(price.effective_from)}</Table.Td>
        </Table.Tr>
      ))}
    </DataTable>
  );
}
