import { Switch, Tooltip } from "@mantine/core";
import type { Adapter } from "../api/types";
import { tell } from "../shared/confirm";
import { useSetPin } from "./queries";

export function PinSwitch({ adapter }: { adapter: Adapter }) {
  const pin = useSetPin(adapter);
  const choose = (pinned: boolean) =>
    tell(
      pin.mutateAsync(pinned),
      `${adapter.name} is ${pinned ? "pinned" : "not pinned any more"}.`,
      `${adapter.name} was not ${pinned ? "pinned" : "unpinned"}`,
    );
  return (
    <Tooltip label="A pinned adapter stays loaded: no request waits for it." multiline maw={240}>
      <Switch
        size="xs"
        label="Pin"
        aria-label={`Pin ${adapter.name}`}
        checked={adapter.pinned}
        disabled={pin.isPending}
        onChange={(event) => choose(event.currentTarget.checked)}
      />
    </Tooltip>
  );
}
