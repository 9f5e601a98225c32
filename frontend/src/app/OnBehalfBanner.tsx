import { Button, Group, Text } from "@mantine/core";
import { IconEyeExclamation } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { useWorkspace } from "../session/context";
import { useEndActing } from "../session/queries";
import { notifyFailed } from "../shared/confirm";
import { formatDateTime } from "../shared/time";
import classes from "./Shell.module.css";

const SPARE_MS = 1_000;

/** On every page while an operator acts for a tenant: whom for, why, until when, and the way out. */
export function OnBehalfBanner() {
  const { session } = useWorkspace();
  const end = useEndActing();
  const queries = useQueryClient();
  const until = session.on_behalf?.expires_at;
  useEffect(() => {
    if (!until) return;
    const left = new Date(until).getTime() - Date.now() + SPARE_MS;
    const timer = setTimeout(() => queries.invalidateQueries({ queryKey: ["session"] }), left);
    return () => clearTimeout(timer);
  }, [until, queries]);
  if (!session.on_behalf) return null;
  const { tenant, reason, expires_at } = session.on_behalf;
  return (
    <Group className={classes.banner} role="status" justify="space-between" gap="sm">
      <Group gap="xs">
        <IconEyeExclamation size={18} aria-hidden />
        <Text size="sm">
          You act for <b>{tenant.name}</b> until {formatDateTime(expires_at)}: {reason}. Its audit
          log names you.
        </Text>
      </Group>
      <Button
        size="compact-sm"
        variant="default"
        loading={end.isPending}
        onClick={() =>
          end.mutate(undefined, { onError: (error) => notifyFailed("It was not ended", error) })
        }
      >
        End
      </Button>
    </Group>
  );
}
