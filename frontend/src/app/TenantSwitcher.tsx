import { Button, Menu, Text } from "@mantine/core";
import { IconCheck, IconSelector } from "@tabler/icons-react";
import { useWorkspace } from "../session/context";

/** The tenant the pages are about; a menu where the user belongs to several. */
export function TenantSwitcher() {
  const { session, membership, selectTenant } = useWorkspace();
  if (!membership) return null;
  if (session.memberships.length <= 1 || session.on_behalf) {
    return (
      <Text size="sm" fw={600} truncate>
        {membership.tenant.name}
      </Text>
    );
  }
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <Button
          variant="default"
          size="sm"
          px="sm"
          maw={{ base: 130, xs: 260 }}
          rightSection={<IconSelector size={14} aria-hidden />}
          aria-label={`Tenant: ${membership.tenant.name}. Change it`}
        >
          <Text size="sm" fw={600} truncate>
            {membership.tenant.name}
          </Text>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Tenant</Menu.Label>
        {session.memberships.map(({ tenant, role }) => (
          <Menu.Item
            key={tenant.id}
            onClick={() => selectTenant(tenant.id)}
            rightSection={
              tenant.id === membership.tenant.id ? <IconCheck size={14} aria-hidden /> : null
            }
          >
            {tenant.name}
            <Text size="xs" c="dimmed">
              {role}
            </Text>
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
