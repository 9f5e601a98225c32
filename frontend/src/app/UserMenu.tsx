import { ActionIcon, Menu, Text } from "@mantine/core";
import { IconBook, IconLogout, IconShieldLock, IconUser } from "@tabler/icons-react";
import { Link } from "react-router";
import { useWorkspace } from "../session/context";
import { useSignOut } from "../session/queries";

export function UserMenu() {
  const { session, membership } = useWorkspace();
  const signOut = useSignOut();
  const role = session.user.is_operator ? "platform operator" : membership?.role;
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <ActionIcon variant="light" size="lg" radius="xl" aria-label="Your account">
          <IconUser size={18} stroke={1.6} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" fw={600} c="var(--mantine-color-text)" truncate>
            {session.user.email}
          </Text>
          <Text size="xs">{role}</Text>
        </Menu.Label>
        <Menu.Divider />
        <Menu.Item
          component={Link}
          to="/security"
          leftSection={<IconShieldLock size={16} aria-hidden />}
        >
          Security
        </Menu.Item>
        <Menu.Item
          component="a"
          href="/api/docs"
          target="_blank"
          leftSection={<IconBook size={16} aria-hidden />}
        >
          API reference
        </Menu.Item>
        <Menu.Item
          leftSection={<IconLogout size={16} aria-hidden />}
          onClick={() => signOut.mutate()}
        >
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
