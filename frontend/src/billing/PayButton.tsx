import { Button } from "@mantine/core";
import type { Invoice } from "../api/types";
import { notifyFailed } from "../shared/confirm";
import { chartValue } from "../shared/money";
import { usePaymentOptions, useStartPayment } from "./payments";

/** For an invoice that asks for something, where it can be paid. */
export function PayButton({ invoice }: { invoice: Invoice }) {
  const options = usePaymentOptions();
  const start = useStartPayment();
  if (!options || chartValue(invoice.open) < chartValue(options.minimum)) return null;
  const pay = () =>
    start.mutate(
      { kind: "invoice", invoice_id: invoice.id },
      { onError: (error) => notifyFailed(`${invoice.number} cannot be paid now`, error) },
    );
  return (
    <Button
      size="compact-sm"
      onClick={pay}
      loading={start.isPending || start.isSuccess}
      aria-label={`Pay ${invoice.number}`}
    >
      Pay
    </Button>
  );
}
