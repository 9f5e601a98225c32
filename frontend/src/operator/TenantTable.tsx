import { Badge, Button, Code, Group, Table, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link } from "react-router";
import type { Tenant } from "../api/types";
import { LimitsModal } from "../limits/LimitsModal";
import { ACTIONS, type Column, DataTable } from "../shared/DataTable";
import { formatDate } from "../shared/time";
import { GrantModal } from "./GrantModal";
import { ActForButton, SuspendButton } from "./TenantControls";

const COLUMNS: (string | Column)[] = [
  "Tenant",
  { label: "Short name", wide: true },
  "State",
  { label: "Created", wide: true },
  ACTIONS,
];

export function TenantTable({ tenants }: { tenants: Tenant[] }) {
  return (
    <DataTable columns={COLUMNS} minWidth={620}>
      {tenants.map((tenant) => (
        <TenantRow key={tenant.id} tenant={tenant} />
      ))}
    </DataTable>
  );
}

function TenantRow({ tenant }: { tenant: Tenant }) {
  const [limitsOpen, limits] = useDisclosure(false);
  const [grantOpen, grant] = useDisclosure(false);
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600}>
          {tenant.name}
        </Text>
      </Table.Td>
      <Table.Td>
        <Code>{tenant.slug}</Code>
      </Table.Td>
      <Table.Td>
        <Badge variant="light" color={tenant.is_active ? "veneer" : "gray"} tt="none">
          {tenant.is_active ? "active" : "suspended"}
        </Badge>
      </Table.Td>
      <Table.Td>{formatDate(tenant.created_at)}</Table.Td>
      <Table.Td>
        <Group gap="xs" justify="flex-end">
          <Button
            size="compact-sm"
            variant="default"
            onClick={limits.open}
            aria-label={`Limits of ${tenant.name}`}
          >
            Limits
          </Button>
          <Button
            size="compact-sm"
            variant="default"
            onClick={grant.open}
            aria-label={`Give credit to ${tenant.name}`}
          >
            Give credit
          </Button>
          <Button
            component={Link}
            to={`/tenants/${tenant.id}/billing`}
            size="compact-sm"
            variant="default"
            aria-label={`Billing of ${tenant.name}`}
          >
            Billing
          </Button>
          <ActForButton tenant={tenant} />
          <SuspendButton tenant={tenant} />
        </Group>
        {limitsOpen && (
          <LimitsModal
            whose={{ level: "tenant", id: tenant.id, label: tenant.name }}
            onClose={limits.close}
          />
        )}
        <GrantModal tenant={tenant} opened={grantOpen} onClose={grant.close} />
      </Table.Td>
    </Table.Tr>
  );
}
