import { NavLink } from "@mantine/core";
import {
  IconBuildingCommunity,
  IconChartBar,
  IconFileInvoice,
  IconHistory,
  IconHome,
  IconKey,
  IconMessages,
  IconScale,
  IconSettings,
  IconStack2,
  IconUserCog,
  IconUsers,
  IconWebhook,
} from "@tabler/icons-react";
import { Link, useLocation } from "react-router";
import { useWorkspace } from "../session/context";
import { roleCan } from "../session/permissions";

const TENANT_PAGES = [
  { to: "/home", label: "Home", Icon: IconHome, needs: "usage:read" },
  { to: "/adapters", label: "Adapters", Icon: IconStack2, needs: "adapters:read" },
  { to: "/keys", label: "API keys", Icon: IconKey, needs: "keys" },
  { to: "/usage", label: "Usage", Icon: IconChartBar, needs: "usage:read" },
  { to: "/playground", label: "Playground", Icon: IconMessages, needs: "inference" },
  { to: "/billing", label: "Billing", Icon: IconFileInvoice, needs: "billing:read" },
  { to: "/webhooks", label: "Webhooks", Icon: IconWebhook, needs: "webhooks" },
  { to: "/members", label: "Members", Icon: IconUsers, needs: "members" },
  { to: "/audit", label: "Audit", Icon: IconHistory, needs: "audit:read" },
  { to: "/settings", label: "Settings", Icon: IconSettings, needs: "members" },
] as const;
const OPERATOR_PAGES = [
  { to: "/tenants", label: "Tenants", Icon: IconBuildingCommunity },
  { to: "/people", label: "People", Icon: IconUserCog },
  { to: "/discrepancies", label: "Discrepancies", Icon: IconScale },
];

export function Navigation() {
  const { pathname } = useLocation();
  const { session, membership } = useWorkspace();
  const pages = [
    ...TENANT_PAGES.filter(({ needs }) => membership && roleCan(membership.role, needs)),
    ...(session.user.is_operator ? OPERATOR_PAGES : []),
  ];
  return (
    <>
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
    </>
  );
}
