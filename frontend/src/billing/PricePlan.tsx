import { Card, Table, Text, Title } from "@mantine/core";
import { type Column, DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatMoney } from "../shared/money";
import { formatRate } from "../shared/numbers";
import { formatDate } from "../shared/time";
import { AgreementTerms } from "./AgreementTerms";
import { containedText } from "./offers";
import { type Offer, useAgreement, usePricePlan } from "./pricePlan";

const COLUMNS: (string | Column)[] = [
  "Model",
  { label: "Input", right: true },
  { label: "Cached input", right: true, wide: true },
  { label: "Output", right: true },
  { label: "Batches", right: true, wide: true },
  { label: "Since", wide: true },
];

/** What a million tokens costs the tenant now, mark-ups and surcharges in it, and what was agreed besides. */
export function PricePlan() {
  const plan = usePricePlan();
  const agreement = useAgreement();
  if (plan.isPending) return <LoadingCards count={1} height={140} />;
  if (plan.isError) {
    return (
      <ErrorState
        error={plan.error}
        what="The prices could not be read"
        onRetry={() => plan.refetch()}
      />
    );
  }
  return (
    <Card withBorder padding={0} component="section" aria-label="Prices per 1M tokens">
      <Title order={2} p="md">
        Prices per 1M tokens
      </Title>
      {plan.data.length === 0 ? (
        <Text px="md" pb="md" size="sm" c="dimmed">
          No price is set for you, so requests are refused. Your operator sets them.
        </Text>
      ) : (
        <DataTable columns={COLUMNS} minWidth={680} bare dense>
          {plan.data.map((offer) => (
            <OfferRow key={`${offer.kind} ${offer.model}`} offer={offer} />
          ))}
        </DataTable>
      )}
      {agreement.data && <AgreementTerms agreement={agreement.data} />}
    </Card>
  );
}

function OfferRow({ offer }: { offer: Offer }) {
  const contained = containedText(offer);
  return (
    <Table.Tr>
      <Table.Td>
        {nameOf(offer)}
        {contained && (
          <Text size="xs" c="dimmed">
            {contained}
          </Text>
        )}
      </Table.Td>
      {[offer.input, offer.cached_input, offer.output].map((rate, column) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the columns never move
        <Table.Td key={column} ta="right" className="figures">
          {formatMoney(rate)}
        </Table.Td>
      ))}
      <Table.Td ta="right" className="figures">
        {offer.batch_discount > 0 ? `−${formatRate(`${offer.batch_discount}`)}` : ""}
      </Table.Td>
      <Table.Td>{formatDate(offer.since)}</Table.Td>
    </Table.Tr>
  );
}

function nameOf({ kind, model }: Offer): string {
  return kind === "any_adapter" ? `Your adapters of ${model}` : model;
}
