import { Card, Progress, Text } from "@mantine/core";
import { changeWords } from "../shared/change";
import { formatShare } from "../shared/numbers";

interface Props {
  label: string;
  shown: string;
  value: number | null;
  /** Of the time before; null: not known yet, or nothing there. */
  before: { shown: string; value: number } | null;
  /** Of a budget, 0 to 1. */
  share?: { of: string; spent: number };
}

/** One number, and how it was the time before. */
export function FigureCard({ label, shown, value, before, share }: Props) {
  const change = before && value !== null ? changeWords(value, before.value) : null;
  return (
    <Card withBorder component="section" aria-label={label}>
      <Text size="sm" c="dimmed" fw={500}>
        {label}
      </Text>
      <Text fz={{ base: "1.25rem", sm: "1.5rem" }} fw={650} lh={1.3} className="figures">
        {shown}
      </Text>
      {share && <Budget share={share} />}
      <Text size="xs" c="dimmed" className="figures">
        {change && before ? `${change}, before ${before.shown}` : "nothing the month before"}
      </Text>
    </Card>
  );
}

const NEAR_THE_END = 0.8;

function Budget({ share: { of, spent } }: { share: { of: string; spent: number } }) {
  const part = Math.min(1, spent);
  return (
    <>
      <Progress
        value={100 * part}
        color={spent >= NEAR_THE_END ? "orange" : "veneer"}
        aria-label={`${formatShare(part)} of the budget is spent`}
        my={4}
      />
      <Text size="xs" c="dimmed" className="figures">
        {`${formatShare(part)} of the budget of ${of}`}
      </Text>
    </>
  );
}
