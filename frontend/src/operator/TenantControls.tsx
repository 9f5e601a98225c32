import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useNavigate } from "react-router";
import type { Tenant } from "../api/types";
import { notifyDone } from "../shared/confirm";
import { useActFor, useSetSuspended } from "./operating";
import { ReasonModal } from "./ReasonModal";

export function ActForButton({ tenant }: { tenant: Tenant }) {
  const [opened, { open, close }] = useDisclosure(false);
  const actFor = useActFor(tenant.id);
  const navigate = useNavigate();
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        onClick={open}
        disabled={!tenant.is_active}
        aria-label={`Act for ${tenant.name}`}
      >
        Act for
      </Button>
      <ReasonModal
        title={`Act for ${tenant.name}?`}
        text="For an hour you see its pages and can help with its adapters. Keys, members and money stay out of your hands."
        submit="Start"
        opened={opened}
        onClose={close}
        change={actFor}
        onDone={() => navigate("/adapters")}
      />
    </>
  );
}

export function SuspendButton({ tenant }: { tenant: Tenant }) {
  const [opened, { open, close }] = useDisclosure(false);
  const set = useSetSuspended(tenant);
  const verb = tenant.is_active ? "Suspend" : "Reactivate";
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        onClick={open}
        aria-label={`${verb} ${tenant.name}`}
      >
        {verb}
      </Button>
      <ReasonModal
        title={`${verb} ${tenant.name}?`}
        text={
          tenant.is_active
            ? "Its keys are refused within a second, and its people are told so. Nothing is deleted."
            : "Its keys and its people are let in again."
        }
        submit={verb}
        opened={opened}
        onClose={close}
        change={set}
        onDone={() =>
          notifyDone(`${tenant.name} is ${tenant.is_active ? "suspended" : "active again"}.`)
        }
      />
    </>
  );
}
