import { Badge, Group, Text, Tooltip } from "@mantine/core";
import { useWorkspace } from "../session/context";

export function LiveBadge() {
  const { live, membership, session } = useWorkspace();
  if (!membership && !session.user.is_operator) return null;
  const why = live
    ? "Changes appear here as they happen"
    : "The event connection is down: pages ask every few seconds instead";
  return (
    <Group mt="auto" px="xs" py={4} justify="space-between">
      <Text size="xs" c="dimmed">
        Updates
      </Text>
      <Tooltip label={why}>
        <Badge size="sm" variant="light" color={live ? "veneer" : "gray"} tt="none">
          {live ? "live" : "polling"}
        </Badge>
      </Tooltip>
    </Group>
  );
}
