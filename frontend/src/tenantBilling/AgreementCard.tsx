import { Button, Card, Group, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Tenant } from "../api/types";
import { AgreementTerms } from "../billing/AgreementTerms";
import type { Agreement } from "../billing/pricePlan";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatDateTime } from "../shared/time";
import { AgreementModal } from "./AgreementModal";
import { useAgreements } from "./queries";

/** The agreement of now, those to come, and a new one. */
export function AgreementCard({ tenant }: { tenant: Tenant }) {
  const [agreeing, agree] = useDisclosure(false);
  const agreements = useAgreements(tenant.id);
  if (agreements.isPending) return <LoadingCards count={1} height={140} />;
  if (agreements.isError) {
    return (
      <ErrorState
        error={agreements.error}
        what="The agreement could not be read"
        onRetry={() => agreements.refetch()}
      />
    );
  }
  const { current, coming } = sorted(agreements.data);
  return (
    <Card withBorder padding={0} component="section" aria-label="Agreement">
      <Group justify="space-between" p="md">
        <Title order={2}>Agreement</Title>
        <Button size="xs" variant="default" onClick={agree.open}>
          Agree anew
        </Button>
      </Group>
      {current ? (
        <Terms agreement={current} />
      ) : (
        <Text px="md" pb="md" size="sm" c="dimmed">
          Tokens at their prices, and nothing else.
        </Text>
      )}
      {coming.map((agreement) => (
        <Terms key={agreement.id} agreement={agreement} />
      ))}
      {agreeing && <AgreementModal tenant={tenant} current={current} onClose={agree.close} />}
    </Card>
  );
}

function Terms({ agreement }: { agreement: Agreement }) {
  return (
    <>
      <Text px="md" size="sm" c="dimmed">
        {`From ${formatDateTime(agreement.effective_from)} on`}
      </Text>
      <AgreementTerms agreement={agreement} />
    </>
  );
}

export function sorted(agreements: Agreement[], now = Date.now()) {
  const start = ({ effective_from: from }: Agreement) => new Date(from).getTime();
  const byStart = agreements.toSorted((a, b) => start(a) - start(b));
  return {
    current: byStart.filter((each) => start(each) <= now).at(-1) ?? null,
    coming: byStart.filter((each) => start(each) > now),
  };
}
