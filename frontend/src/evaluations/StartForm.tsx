import { Alert, Button, Card, Group, NumberInput, Select, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import { readyVersions } from "../adapters/versions";
import { messageOf } from "../api/errors";
import type { Adapter, PromptSetRow } from "../api/types";
import { PromptSetField } from "./PromptSetField";
import { useStartEvaluation } from "./queries";

const BASE = "base";
const FEWEST_TOKENS = 1;
const MOST_TOKENS = 1024;
const DEFAULT_TOKENS = 256;

interface Props {
  adapter: Adapter;
  sets: PromptSetRow[];
  onStarted: (id: string) => void;
}

/** Which prompts, which two sides, and how long an answer may be. */
export function StartForm({ adapter, sets, onStarted }: Props) {
  const ready = readyVersions(adapter).map(({ number }) => String(number));
  const [chosenSet, setChosenSet] = useState(sets[0]?.id ?? "");
  const [candidate, setCandidate] = useState(ready[0] ?? "");
  const [against, setAgainst] = useState(ready[1] ?? BASE);
  const [tokens, setTokens] = useState<number | string>(DEFAULT_TOKENS);
  const start = useStartEvaluation(adapter.id);
  const isKnownSet = sets.some(({ id }) => id === chosenSet);
  const others = ready.filter((number) => number !== candidate);
  const baseline = others.includes(against) ? against : BASE;
  const send = () =>
    start.mutate(
      {
        prompt_set: chosenSet,
        candidate: Number(candidate),
        baseline: baseline === BASE ? null : Number(baseline),
        max_tokens: Number(tokens),
      },
      { onSuccess: ({ id }) => onStarted(id) },
    );
  return (
    <Card withBorder component="section" aria-label="New evaluation">
      <Stack>
        <Title order={2} size="h4">
          New evaluation
        </Title>
        {start.isError && (
          <Alert color="red" role="alert">
            {messageOf(start.error)}
          </Alert>
        )}
        <PromptSetField
          adapterId={adapter.id}
          sets={sets}
          value={chosenSet}
          onChange={setChosenSet}
        />
        <Group align="flex-end" gap="xs">
          <Select
            label="Version to judge"
            data={ready.map(versionChoice)}
            value={candidate}
            onChange={(number) => number && setCandidate(number)}
            allowDeselect={false}
            w={150}
          />
          <Select
            label="Against"
            data={[...others.map(versionChoice), { value: BASE, label: "the base model" }]}
            value={baseline}
            onChange={(side) => side && setAgainst(side)}
            allowDeselect={false}
            w={170}
          />
          <NumberInput
            label="Tokens of an answer"
            min={FEWEST_TOKENS}
            max={MOST_TOKENS}
            clampBehavior="strict"
            allowDecimal={false}
            value={tokens}
            onChange={setTokens}
            w={190}
          />
          <Button
            onClick={send}
            loading={start.isPending}
            disabled={!isKnownSet || Number(tokens) < FEWEST_TOKENS}
          >
            Start
          </Button>
        </Group>
        <Text size="sm" c="dimmed">
          Every prompt is asked of both sides, at temperature 0. It is your own traffic: within your
          limits, and on your bill.
        </Text>
      </Stack>
    </Card>
  );
}

function versionChoice(number: string) {
  return { value: number, label: `version ${number}` };
}
