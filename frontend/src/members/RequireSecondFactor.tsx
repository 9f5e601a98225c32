import { Card, Switch } from "@mantine/core";
import { useSetTenantRequires, useTenantRequires } from "../security/factors";
import { useTenant } from "../session/context";
import { notifyDone, notifyFailed } from "../shared/confirm";

/** Every member sees whether it is asked of them; an owner chooses. */
export function RequireSecondFactor() {
  const { membership } = useTenant();
  const requires = useTenantRequires();
  const set = useSetTenantRequires();
  if (!requires.data) return null;
  const choose = (is_required: boolean) =>
    set.mutate(is_required, {
      onSuccess: () =>
        notifyDone(
          is_required
            ? "Members without a second factor can do nothing until they set one up."
            : "The password alone is enough.",
        ),
      onError: (error) => notifyFailed("Nothing was changed", error),
    });
  return (
    <Card withBorder>
      <Switch
        label="Members need a second factor"
        description={
          membership?.role === "owner"
            ? "Whoever has none is told to set it up, and can do nothing else in this tenant. API keys go on."
            : "An owner chooses this."
        }
        checked={requires.data.is_required}
        disabled={membership?.role !== "owner" || set.isPending}
        onChange={(event) => choose(event.currentTarget.checked)}
      />
    </Card>
  );
}
