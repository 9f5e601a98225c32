import { Button } from "@mantine/core";
import type { Batch } from "../api/types";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { confirmDanger, tell } from "../shared/confirm";
import { formatMoney } from "../shared/money";
import { formatCount } from "../shared/numbers";
import { useCancelBatch } from "./queries";
import { canBeCancelled } from "./statuses";

export function CancelBatch({ batch }: { batch: Batch }) {
  const { membership } = useTenant();
  const cancel = useCancelBatch();
  const mayCancel = membership !== null && roleCan(membership.role, "inference");
  if (!mayCancel || !canBeCancelled(batch)) return null;
  const ask = () =>
    confirmDanger({
      title: "Cancel the batch?",
      text: consequences(batch),
      confirm: "Cancel the batch",
      onConfirm: () =>
        tell(
          cancel.mutateAsync(batch.id),
          "No more lines are begun. What has finished is kept.",
          "The batch was not cancelled",
        ),
    });
  return (
    <Button size="xs" variant="default" c="red.9" onClick={ask} loading={cancel.isPending}>
      Cancel the batch
    </Button>
  );
}

function consequences({ completed, failed, total, amount }: Batch): string {
  const finished = completed + failed;
  return (
    `No more lines are begun. What has finished is kept and billed: ${formatCount(finished)} of ` +
    `${formatCount(total)} lines, ${formatMoney(amount)} so far. What is under way just now still ends, and ` +
    "is billed too. The rest stays unanswered and costs nothing."
  );
}
