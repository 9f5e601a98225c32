import { NavLink } from "@mantine/core";
import {
  IconBuildingCommunity,
  IconChartBar,
  IconKey,
  IconMessages,
  IconStack2,
} from "@tabler/icons-react";
import { Link, useLocation } from "react-router";
import { useWorkspace } from "../session/context";

const TENANT_PAGES = [
  { to: "/adapters", label: "Adapters", Icon: IconStack2 },
  { to: "/keys", label: "API keys", Icon: IconKey },
  { to: "/usage", label: "Usage", Icon: IconChartBar },
  { to: "/playground", label: "Playground", Icon: IconMessages },
];
const OPERATOR_PAGES = [{ to: "/tenants", label: "Tenants", Icon: IconBuildingCommunity }];

export function Navigation() {
  const { pathname } = useLocation();
  const { session, membership } = useWorkspace();
  const pages = [
    ...(membership ? TENANT_PAGES : []),
    ...(session.user.is_operator ? OPERATOR_PAGES : []),
  ];
  return (
    <nav aria-label="Pages">
      {pages.map(({ to, label, Icon }) => (
        <NavLink
          key={to}
          component={Link}
          to={to}
          label={label}
          active={pathname.startsWith(to)}
          aria-current={pathname.startsWith(to) ? "page" : undefined}
          leftSection={<Icon size={18} stroke={1.6} aria-hidden />}
          fw={500}
          mb={2}
          style={{ borderRadius: "var(--mantine-radius-md)" }}
        />
      ))}
    </nav>
  );
}
