import { SimpleGrid } from "@mantine/core";
import type { Replica } from "../api/types";
import { Figure } from "../shared/Figure";
import { formatCount, formatShare, formatShort } from "../shared/numbers";
import type { Rates } from "./rates";

type Load = NonNullable<Replica["load"]>;
type Limits = NonNullable<Replica["limits"]>;

export function sumOf(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

export function LoadFigures({
  load,
  limits,
  rates,
}: {
  load: Load;
  limits: Limits;
  rates: Rates | null;
}) {
  const perStep = rates?.sequencesPerStep;
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }}>
      <Figure label="Running" note={`of ${formatCount(limits.max_running)} at once`}>
        {formatCount(sumOf(load.running))}
      </Figure>
      <Figure label="Waiting" note="for their turn">
        {formatCount(sumOf(load.waiting))}
      </Figure>
      <Figure
        label="Batch"
        note={
          rates?.tokensPerStep
            ? `sequences a step, ${formatShort(rates.tokensPerStep)} tokens of ${formatCount(limits.step_tokens)}`
            : "sequences a step"
        }
      >
        {perStep ? formatShort(perStep) : "–"}
      </Figure>
      <Figure
        label="Generated"
        note={`tokens/s, ${rates ? formatShort(rates.computedPerSecond) : "–"} computed`}
      >
        {rates ? formatShort(rates.generatedPerSecond) : "–"}
      </Figure>
      <Figure
        label="Busy"
        note={
          rates?.secondsPerStep
            ? `${formatShort(rates.secondsPerStep * 1000)} ms a step`
            : "no step"
        }
      >
        {rates ? formatShare(rates.busy) : "–"}
      </Figure>
    </SimpleGrid>
  );
}
