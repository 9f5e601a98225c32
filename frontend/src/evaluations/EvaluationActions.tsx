import { Button } from "@mantine/core";
import type { EvaluationRow } from "../api/types";
import { confirmDanger, notifyFailed, tell } from "../shared/confirm";
import { isRunning, useCancelEvaluation, useDeleteEvaluation } from "./queries";

interface Props {
  evaluation: EvaluationRow;
  onDeleted: () => void;
}

/** Cancels one that runs; deletes one that has ended. */
export function EvaluationActions({ evaluation, onDeleted }: Props) {
  return isRunning(evaluation) ? (
    <Cancel evaluation={evaluation} />
  ) : (
    <Delete evaluation={evaluation} onDeleted={onDeleted} />
  );
}

function Cancel({ evaluation: { id, done, total } }: { evaluation: EvaluationRow }) {
  const cancel = useCancelEvaluation();
  const ask = () =>
    confirmDanger({
      title: "Cancel the evaluation?",
      text: `No further prompt is asked. The answers to ${done} of ${total} prompts stay, and are billed; what is being answered just now still ends, and is billed too.`,
      confirm: "Cancel the evaluation",
      onConfirm: () =>
        tell(
          cancel.mutateAsync(id),
          "No further prompt is asked.",
          "The evaluation was not cancelled",
        ),
    });
  return (
    <Button size="xs" variant="default" c="red.9" onClick={ask} loading={cancel.isPending}>
      Cancel the evaluation
    </Button>
  );
}

function Delete({ evaluation: { id }, onDeleted }: Props) {
  const remove = useDeleteEvaluation();
  const ask = () =>
    confirmDanger({
      title: "Delete the evaluation?",
      text: "Its answers are gone. What they have cost stays in the books.",
      confirm: "Delete the evaluation",
      onConfirm: () =>
        remove.mutate(id, {
          onSuccess: onDeleted,
          onError: (error) => notifyFailed("The evaluation was not deleted", error),
        }),
    });
  return (
    <Button size="xs" variant="default" onClick={ask} loading={remove.isPending}>
      Delete
    </Button>
  );
}
