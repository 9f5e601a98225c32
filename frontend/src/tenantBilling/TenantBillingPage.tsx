import { Anchor, Stack } from "@mantine/core";
import { IconFileInvoice } from "@tabler/icons-react";
import { Link, useParams } from "react-router";
import type { Tenant } from "../api/types";
import { useTenants } from "../operator/queries";
import { EmptyState } from "../shared/EmptyState";
import { ListStates } from "../shared/ListStates";
import { PageHeader } from "../shared/PageHeader";
import { AgreementCard } from "./AgreementCard";
import { InvoiceList } from "./InvoiceList";
import { ProfileCard } from "./ProfileCard";

const NOBODY = {
  icon: IconFileInvoice,
  title: "There is no such tenant",
  text: "Choose one on the page Tenants.",
};

export function Component() {
  const { tenantId } = useParams();
  const tenants = useTenants();
  const tenant = tenants.data?.find(({ id }) => id === tenantId);
  return (
    <>
      <PageHeader
        title={tenant ? `Billing of ${tenant.name}` : "Billing of a tenant"}
        action={
          <Anchor component={Link} to="/tenants" size="sm">
            All tenants
          </Anchor>
        }
      >
        What was agreed, how it is billed, and what became of each invoice.
      </PageHeader>
      <ListStates query={tenants} isEmpty={!tenant} what="The tenants" nothing={NOBODY}>
        {tenant && <Money tenant={tenant} />}
      </ListStates>
    </>
  );
}

function Money({ tenant }: { tenant: Tenant }) {
  return (
    <Stack gap="lg">
      <InvoiceList
        tenant={tenant}
        empty={
          <EmptyState icon={IconFileInvoice} title="No invoice yet">
            The first one comes by itself when the first period is over and came to something.
          </EmptyState>
        }
      />
      <AgreementCard tenant={tenant} />
      <ProfileCard tenant={tenant} />
    </Stack>
  );
}
