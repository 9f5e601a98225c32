import { Stack, Title } from "@mantine/core";
import { IconFileInvoice } from "@tabler/icons-react";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { AddCreditButton } from "./AddCreditButton";
import { BalanceCards } from "./BalanceCards";
import { CreditTable } from "./CreditTable";
import { EarningsCard } from "./EarningsCard";
import { InvoiceAddress } from "./InvoiceAddress";
import { InvoiceTable } from "./InvoiceTable";
import { Payments } from "./PaymentTable";
import { PricePlan } from "./PricePlan";
import { useInvoices } from "./queries";

export function Component() {
  const invoices = useInvoices();
  return (
    <>
      <PageHeader title="Billing" action={<AddCreditButton />}>
        What this period has cost so far, what is owed, the invoice of every period that is over,
        and what a token costs you.
      </PageHeader>
      <Stack gap="lg">
        <BalanceCards />
        <Stack gap="xs">
          <Title order={2}>Invoices</Title>
          <Invoices />
        </Stack>
        <Payments invoices={invoices.data ?? []} />
        <EarningsCard />
        <CreditTable />
        <PricePlan />
        <InvoiceAddress />
      </Stack>
    </>
  );
}

function Invoices() {
  const invoices = useInvoices();
  if (invoices.isPending) return <LoadingCards height={48} />;
  if (invoices.isError) {
    return (
      <ErrorState
        error={invoices.error}
        what="The invoices could not be read"
        onRetry={() => invoices.refetch()}
      />
    );
  }
  if (invoices.data.length === 0) {
    return (
      <EmptyState icon={IconFileInvoice} title="No invoice yet">
        The first one comes by itself when the first period is over.
      </EmptyState>
    );
  }
  return <InvoiceTable invoices={invoices.data} />;
}
