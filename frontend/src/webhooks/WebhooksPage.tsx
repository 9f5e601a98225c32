import { Button, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlus, IconWebhook } from "@tabler/icons-react";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { CreateWebhookModal } from "./CreateWebhookModal";
import { useWebhooks } from "./queries";
import { WebhookCard } from "./WebhookCard";

export function Component() {
  const [creating, create] = useDisclosure(false);
  const createButton = (
    <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={create.open}>
      Add a webhook
    </Button>
  );
  return (
    <>
      <PageHeader title="Webhooks" action={createButton}>
        Addresses of yours that are told when a budget nears its end, an adapter is checked, a key
        expires or an invoice comes. Each message is signed.
      </PageHeader>
      <List />
      <CreateWebhookModal opened={creating} onClose={create.close} />
    </>
  );
}

function List() {
  const webhooks = useWebhooks();
  if (webhooks.isPending) return <LoadingCards />;
  if (webhooks.isError) {
    return (
      <ErrorState
        error={webhooks.error}
        what="The webhooks could not be read"
        onRetry={() => webhooks.refetch()}
      />
    );
  }
  if (webhooks.data.length === 0) {
    return (
      <EmptyState icon={IconWebhook} title="No webhooks yet">
        Add the https address of a program of yours. It gets what happens as signed JSON, again and
        again until it answers.
      </EmptyState>
    );
  }
  return (
    <Stack>
      {webhooks.data.map((webhook) => (
        <WebhookCard key={webhook.id} webhook={webhook} />
      ))}
    </Stack>
  );
}
