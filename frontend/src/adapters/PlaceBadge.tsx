import { Badge, Tooltip } from "@mantine/core";
import { IconCpu, IconDatabase, IconLoader, IconServer } from "@tabler/icons-react";
import type { Place } from "../api/types";

const LOOKS = {
  device: { color: "veneer", text: "on the device", Icon: IconCpu, why: "A request runs at once." },
  host: {
    color: "blue",
    text: "in host memory",
    Icon: IconServer,
    why: "The next request copies it to the device first.",
  },
  loading: { color: "blue", text: "loading", Icon: IconLoader, why: "It is being read now." },
  disk: {
    color: "gray",
    text: "on disk",
    Icon: IconDatabase,
    why: "The next request reads it first.",
  },
} as const;

/** Where a version's weights are just now. */
export function PlaceBadge({ place }: { place: Place }) {
  const { color, text, Icon, why } = LOOKS[place];
  return (
    <Tooltip label={why}>
      <Badge
        variant="light"
        color={color}
        tt="none"
        leftSection={<Icon size={12} aria-hidden />}
        tabIndex={0}
      >
        {text}
      </Badge>
    </Tooltip>
  );
}
