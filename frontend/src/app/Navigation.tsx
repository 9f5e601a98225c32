import { NavLink, Text } from "@mantine/core";
import {
  type Icon,
  IconBell,
  IconBuildingCommunity,
  IconChartBar,
  IconCube,
  IconEye,
  IconFileInvoice,
  IconFiles,
  IconGauge,
  IconHeartbeat,
  IconHistory,
  IconHome,
  IconKey,
  IconListCheck,
  IconMessages,
  IconRulerMeasure,
  IconScale,
  IconScaleOutline,
  IconServer2,
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
  { to: "/batches", label: "Batches", Icon: IconFiles, needs: "usage:read" },
  { to: "/limits", label: "Limits", Icon: IconGauge, needs: "usage:read" },
  { to: "/playground", label: "Playground", Icon: IconMessages, needs: "inference" },
  { to: "/billing", label: "Billing", Icon: IconFileInvoice, needs: "billing:read" },
  { to: "/webhooks", label: "Webhooks", Icon: IconWebhook, needs: "webhooks" },
  { to: "/members", label: "Members", Icon: IconUsers, needs: "members" },
  { to: "/audit", label: "Audit", Icon: IconHistory, needs: "audit:read" },
  { to: "/settings", label: "Settings", Icon: IconSettings, needs: "members" },
] as const;
const OPERATOR_PAGES = [
  { to: "/fleet", label: "Fleet", Icon: IconServer2 },
  { to: "/health", label: "Health", Icon: IconHeartbeat },
  { to: "/alerts", label: "Alerts", Icon: IconBell },
  { to: "/jobs", label: "Jobs", Icon: IconListCheck },
  { to: "/tenants", label: "Tenants", Icon: IconBuildingCommunity },
  { to: "/people", label: "People", Icon: IconUserCog },
  { to: "/margin", label: "Margin", Icon: IconScaleOutline },
  { to: "/discrepancies", label: "Discrepancies", Icon: IconScale },
  { to: "/models", label: "Base models", Icon: IconCube },
  { to: "/capacity", label: "Capacity", Icon: IconRulerMeasure },
  { to: "/audit-all", label: "Audit of all", Icon: IconEye },
];

export function Navigation() {
  const { session, membership } = useWorkspace();
  const ofTenant = TENANT_PAGES.filter(
    ({ needs }) => membership && roleCan(membership.role, needs),
  );
  const ofOperator = session.user.is_operator ? OPERATOR_PAGES : [];
  return (
    <>
      {ofTenant.map((page) => (
        <PageLink key={page.to} {...page} />
      ))}
      {ofTenant.length > 0 && ofOperator.length > 0 && (
        <Text size="xs" c="dimmed" fw={600} px="sm" pt="sm" pb={4}>
          Platform
        </Text>
      )}
      {ofOperator.map((page) => (
        <PageLink key={page.to} {...page} />
      ))}
    </>
  );
}

function PageLink({ to, label, Icon }: { to: string; label: string; Icon: Icon }) {
  const { pathname } = useLocation();
  const isHere = pathname === to || pathname.startsWith(`${to}/`);
  return (
    <NavLink
      component={Link}
      to={to}
      label={label}
      active={isHere}
      aria-current={isHere ? "page" : undefined}
      leftSection={<Icon size={18} stroke={1.6} aria-hidden />}
      fw={500}
      mb={2}
      style={{ borderRadius: "var(--mantine-radius-md)" }}
    />
  );
}
