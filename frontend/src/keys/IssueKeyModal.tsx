import { Alert, Modal } from "@mantine/core";
import { IssuedKeyView } from "./IssuedKeyView";
import { IssueKeyForm } from "./IssueKeyForm";
import { useIssueKey } from "./queries";

interface Props {
  opened: boolean;
  onClose: () => void;
}

/** First the form; then the key, once. A click beside the dialogue must not lose a key nobody has copied. */
export function IssueKeyModal({ opened, onClose }: Props) {
  const issue = useIssueKey();
  const issued = issue.data;
  const close = () => {
    onClose();
    issue.reset();
  };
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={issued ? "Your new key" : "Issue a key"}
      closeOnClickOutside={!issued}
      closeOnEscape={!issued}
    >
      {issued ? (
        <>
          {issued.budgetProblem && (
            <Alert color="red" role="alert" mb="md" title="The key has no budget yet">
              {`${issued.budgetProblem} Set it under Limits in the list.`}
            </Alert>
          )}
          <IssuedKeyView issued={issued} onClose={close} />
        </>
      ) : (
        <IssueKeyForm
          onSubmit={(values) => issue.mutate(values)}
          pending={issue.isPending}
          error={issue.error}
        />
      )}
    </Modal>
  );
}
