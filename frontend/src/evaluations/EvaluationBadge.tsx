import { Badge, Loader } from "@mantine/core";
import type { EvaluationRow } from "../api/types";

const LOOKS: Record<EvaluationRow["state"], { color: string; text: string }> = {
  running: { color: "blue", text: "running" },
  done: { color: "veneer", text: "done" },
  cancelled: { color: "gray", text: "cancelled" },
  failed: { color: "red", text: "failed" },
};

export function EvaluationBadge({ state }: { state: EvaluationRow["state"] }) {
  const { color, text } = LOOKS[state];
  return (
    <Badge
      variant="light"
      color={color}
      tt="none"
      leftSection={state === "running" ? <Loader size={10} color={color} aria-hidden /> : null}
    >
      {text}
    </Badge>
  );
}
