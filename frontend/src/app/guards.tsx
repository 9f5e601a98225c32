import { Button } from "@mantine/core";
import {
  IconBuildingCommunity,
  IconBuildingOff,
  IconLock,
  IconShieldLock,
} from "@tabler/icons-react";
import { Link, Outlet } from "react-router";
import type { Membership } from "../api/types";
import { useTenant, useWorkspace } from "../session/context";
import { type Action, roleCan } from "../session/permissions";
import { EmptyState } from "../shared/EmptyState";
import { NotFoundPage } from "./FallbackPages";

/** A page that the role may not open says so instead of showing refusals. */
export function Needs({ action }: { action: Action }) {
  const { membership } = useTenant();
  if (membership && roleCan(membership.role, action)) return <Outlet />;
  return (
    <EmptyState icon={IconLock} title="Your role does not open this page">
      An owner or admin of the tenant can give you another role.
    </EmptyState>
  );
}

/** Pages about a tenant. Keyed by it, so that nothing of one tenant's page survives a switch. */
export function TenantOnly() {
  const { membership } = useWorkspace();
  if (!membership) {
    return (
      <EmptyState icon={IconBuildingCommunity} title="You belong to no tenant">
        Ask an owner of the tenant, or the platform's operator, to add you. Then reload this page.
      </EmptyState>
    );
  }
  if (membership.barred) return <Barred name={membership.tenant.name} why={membership.barred} />;
  return <Outlet key={membership.tenant.id} />;
}

function Barred({ name, why }: { name: string; why: NonNullable<Membership["barred"]> }) {
  if (why === "tenant_suspended") {
    return (
      <EmptyState icon={IconBuildingOff} title={`${name} is suspended`}>
        Its keys are refused, and nothing in it can be changed. Ask the platform's operator.
      </EmptyState>
    );
  }
  if (why === "single_sign_on_needed") {
    return (
      <EmptyState
        icon={IconShieldLock}
        title={`${name} asks its members to come in through the company`}
        action={
          <Button component={Link} to="/security">
            Connect your account
          </Button>
        }
      >
        Connect it once, then sign out, and sign in with your company.
      </EmptyState>
    );
  }
  return (
    <EmptyState
      icon={IconShieldLock}
      title={`${name} asks its members for a second factor`}
      action={
        <Button component={Link} to="/security">
          Set it up
        </Button>
      }
    >
      An app for one-time codes or a passkey will do. Then these pages open.
    </EmptyState>
  );
}

export function OperatorOnly() {
  const { session } = useWorkspace();
  return session.user.is_operator ? <Outlet /> : <NotFoundPage />;
}
