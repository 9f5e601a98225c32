import { Alert, Group, Loader, Paper, Stack, Text } from "@mantine/core";
import { useEffect, useRef } from "react";
import { AnswerFigures } from "./AnswerFigures";
import type { Answer, Turn } from "./answer";
import classes from "./Playground.module.css";

export function TurnView({ turn }: { turn: Turn }) {
  const { prompt, answer } = turn;
  const end = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new text is what should come into view
  useEffect(() => {
    end.current?.scrollIntoView({ block: "nearest" });
  }, [answer.text.length, answer.state]);
  return (
    <Stack gap="xs">
      <Paper className={classes.prompt} px="sm" py={8} radius="lg">
        <Text size="sm" className={classes.text}>
          {prompt}
        </Text>
      </Paper>
      {answer.state === "waiting" && (
        <Group gap="xs">
          <Loader size="xs" type="dots" aria-hidden />
          <Text size="sm" c="dimmed">
            Waiting for the first token
          </Text>
        </Group>
      )}
      {answer.text && (
        <Text size="sm" className={classes.text} data-testid="answer">
          {answer.text}
        </Text>
      )}
      <Outcome answer={answer} />
      <AnswerFigures answer={answer} />
      <div ref={end} className={classes.end} />
    </Stack>
  );
}

function Outcome({ answer }: { answer: Answer }) {
  if (answer.problem) {
    return (
      <Alert color="red" title={answer.text ? "The answer broke off" : "No answer"} role="alert">
        {answer.problem}
      </Alert>
    );
  }
  if (answer.state === "stopped") {
    return (
      <Text size="xs" c="dimmed">
        Stopped. Tokens generated until then are billed.
      </Text>
    );
  }
  if (answer.state === "done" && answer.finishReason === "length") {
    return (
      <Text size="xs" c="dimmed">
        Cut off at max tokens.
      </Text>
    );
  }
  return null;
}
