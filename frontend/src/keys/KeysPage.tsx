import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconKey, IconPlus } from "@tabler/icons-react";
import { useTenant } from "../session/context";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { CallExample } from "./CallExample";
import { IssueKeyModal } from "./IssueKeyModal";
import { KeyTable } from "./KeyTable";
import { useKeys } from "./queries";

export function Component() {
  const { session } = useTenant();
  const [issuing, issue] = useDisclosure(false);
  const issueButton = (
    <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={issue.open}>
      Issue a key
    </Button>
  );
  return (
    <>
      <PageHeader title="API keys" action={issueButton}>
        Programs use a key to call your adapters. A key is shown once, when it is issued.
      </PageHeader>
      <KeyList />
      <CallExample doorUrl={session.door_url} model={session.base_model.name} />
      <IssueKeyModal opened={issuing} onClose={issue.close} />
    </>
  );
}

function KeyList() {
  const keys = useKeys();
  if (keys.isPending) return <LoadingCards height={48} />;
  if (keys.isError) {
    return (
      <ErrorState
        error={keys.error}
        what="The keys could not be read"
        onRetry={() => keys.refetch()}
      />
    );
  }
  if (keys.data.length === 0) {
    return (
      <EmptyState icon={IconKey} title="No keys yet">
        Issue one for each program: then you can see what it uses, and revoke it alone.
      </EmptyState>
    );
  }
  return <KeyTable keys={keys.data} />;
}
