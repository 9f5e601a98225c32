import { Badge, Card, Group, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import type { Evaluation, EvaluationCase } from "../api/types";
import { Answer } from "./Answer";
import { baselineName, candidateName } from "./sides";

interface Props {
  evaluation: Evaluation;
  found: EvaluationCase;
}

/** One prompt and both answers to it, side by side. */
export function CaseCard({
  evaluation,
  found: { number, prompt, candidate, baseline, differs },
}: Props) {
  return (
    <Card
      withBorder
      component="article"
      aria-label={`Prompt ${number}`}
      style={differs ? { borderColor: "var(--mantine-color-orange-6)" } : undefined}
    >
      <Stack gap="sm">
        <Group gap="xs">
          <Title order={3} size="h5">{`Prompt ${number}`}</Title>
          <Verdict differs={differs} />
        </Group>
        <Prompt prompt={prompt} />
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <Answer
            side={candidateName(evaluation)}
            answer={candidate}
            other={(differs && baseline?.text) || null}
          />
          <Answer
            side={baselineName(evaluation)}
            answer={baseline}
            other={(differs && candidate?.text) || null}
          />
        </SimpleGrid>
      </Stack>
    </Card>
  );
}

function Verdict({ differs }: { differs: boolean | null }) {
  if (differs === null) return null;
  return (
    <Badge variant="light" color={differs ? "orange" : "gray"} tt="none">
      {differs ? "the answers differ" : "the same answer"}
    </Badge>
  );
}

function Prompt({ prompt: { prompt, messages = [] } }: { prompt: EvaluationCase["prompt"] }) {
  const parts = prompt === undefined ? messages : [{ role: "prompt", content: prompt }];
  return (
    <div>
      {parts.map(({ role, content }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the prompt of a set never changes
        <Text key={index} size="sm" style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
          <Text span c="dimmed" size="xs">{`${role}: `}</Text>
          {content}
        </Text>
      ))}
    </div>
  );
}
