import { Stack } from "@mantine/core";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { DomainsSection } from "./DomainsSection";
import { ProviderSection } from "./ProviderSection";
import { useSingleSignOn } from "./queries";

export function Component() {
  const found = useSingleSignOn();
  return (
    <>
      <PageHeader title="Settings">How the people of this tenant come in.</PageHeader>
      {found.isPending && <LoadingCards />}
      {found.isError && (
        <ErrorState
          error={found.error}
          what="The settings could not be read"
          onRetry={() => found.refetch()}
        />
      )}
      {found.data && (
        <Stack gap="lg">
          <ProviderSection found={found.data} />
          <DomainsSection domains={found.data.domains} />
        </Stack>
      )}
    </>
  );
}
