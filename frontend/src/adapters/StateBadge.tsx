import { Badge, Loader } from "@mantine/core";
import type { Adapter } from "../api/types";

const LOOKS: Record<Adapter["state"], { color: string; text: string; busy?: boolean }> = {
  empty: { color: "gray", text: "empty" },
  uploading: { color: "indigo", text: "uploading" },
  checking: { color: "blue", text: "checking", busy: true },
  ready: { color: "veneer", text: "ready" },
  rejected: { color: "red", text: "rejected" },
};

export function StateBadge({ state }: { state: Adapter["state"] }) {
  const { color, text, busy } = LOOKS[state];
  return (
    <Badge
      variant="light"
      color={color}
      tt="none"
      leftSection={busy ? <Loader size={10} color={color} aria-hidden /> : null}
    >
      {text}
    </Badge>
  );
}
