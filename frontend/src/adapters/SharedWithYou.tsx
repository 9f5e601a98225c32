import { Button, Card, Stack, Table, Text, Title } from "@mantine/core";
import type { SharedAdapter } from "../api/types";
import { containedText } from "../billing/offers";
import { type Offer, usePricePlan } from "../billing/pricePlan";
import { CopyText } from "../shared/CopyText";
import { confirmDanger, tell } from "../shared/confirm";
import { ACTIONS, DataTable } from "../shared/DataTable";
import { formatMoney } from "../shared/money";
import { useGiveBack, useSharedAdapters } from "./queries";

const COLUMNS = [
  "Model name",
  { label: "Owner", wide: true },
  { label: "Base model", wide: true },
  { label: "Answers with", wide: true },
  "Input, cached, output per 1M",
  ACTIONS,
];

/** What other tenants share; nothing where nobody does. */
export function SharedWithYou({ canWrite }: { canWrite: boolean }) {
  const shared = useSharedAdapters();
  const plan = usePricePlan();
  const offers = new Map(plan.data?.map((offer) => [offer.adapter_id, offer]));
  if (!shared.data || shared.data.length === 0) return null;
  return (
    <Card withBorder component="section" aria-label="Shared with you">
      <Stack gap="sm">
        <Title order={2}>Shared with you</Title>
        <DataTable columns={COLUMNS} minWidth={720} bare dense flush>
          {shared.data.map((adapter) => (
            <SharedRow
              key={adapter.id}
              adapter={adapter}
              offer={offers.get(adapter.id)}
              canWrite={canWrite}
            />
          ))}
        </DataTable>
      </Stack>
    </Card>
  );
}

interface RowProps {
  adapter: SharedAdapter;
  /** Undefined: it has no price, or that is not known yet. */
  offer: Offer | undefined;
  canWrite: boolean;
}

function SharedRow({ adapter, offer, canWrite }: RowProps) {
  const giveBack = useGiveBack();
  const confirm = () =>
    confirmDanger({
      title: `Give ${adapter.model} back?`,
      text: `Your next request for ${adapter.model} is refused. ${adapter.owner} may share it with you again.`,
      confirm: "Give it back",
      onConfirm: () =>
        tell(
          giveBack.mutateAsync(adapter.id),
          `${adapter.model} is not yours to call any more.`,
          "It is still shared with you",
        ),
    });
  const versions = adapter.versions.map((number) => `v${number}`).join(", ");
  return (
    <Table.Tr>
      <Table.Td>
        <CopyText value={adapter.model} label="Copy the model name" />
      </Table.Td>
      <Table.Td>{adapter.owner}</Table.Td>
      <Table.Td>{adapter.base_model}</Table.Td>
      <Table.Td>{versions || "nothing now"}</Table.Td>
      <Table.Td className="figures">{offer && <Price offer={offer} />}</Table.Td>
      <Table.Td ta="right">
        {canWrite && (
          <Button
            size="compact-xs"
            variant="default"
            onClick={confirm}
            loading={giveBack.isPending}
          >
            Give back
          </Button>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function Price({ offer }: { offer: Offer }) {
  return (
    <>
      {[offer.input, offer.cached_input, offer.output].map(formatMoney).join(" · ")}
      <Text size="xs" c="dimmed">
        {containedText(offer)}
      </Text>
    </>
  );
}
