import { Badge, Tooltip } from "@mantine/core";
import { useWorkspace } from "../session/context";

export function LiveBadge() {
  const { live, membership } = useWorkspace();
  if (!membership) return null;
  const why = live
    ? "Changes appear here as they happen"
    : "The event connection is down: pages ask every few seconds instead";
  return (
    <Tooltip label={why}>
      <Badge size="sm" variant="light" color={live ? "veneer" : "gray"} tt="none">
        {live ? "live" : "polling"}
      </Badge>
    </Tooltip>
  );
}
