import { Alert, Button, Group, Loader, Paper, Stack, Text } from "@mantine/core";
import { IconCode } from "@tabler/icons-react";
import { useEffect, useRef } from "react";
import { AnswerFigures } from "./AnswerFigures";
import { type Answer, isRunning, type Turn } from "./answer";
import classes from "./Playground.module.css";
import { TokenHeat } from "./TokenHeat";

interface Props {
  turn: Turn;
  onShowCode: (turn: Turn) => void;
}

export function TurnView({ turn, onShowCode }: Props) {
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
      <AnswerText answer={answer} />
      <Outcome answer={answer} />
      <AnswerFigures answer={answer} />
      {!isRunning(answer) && (
        <Button
          variant="subtle"
          color="gray"
          size="compact-xs"
          w="fit-content"
          leftSection={<IconCode size={14} aria-hidden />}
          onClick={() => onShowCode(turn)}
        >
          Show as code
        </Button>
      )}
      <div ref={end} className={classes.end} />
    </Stack>
  );
}

function AnswerText({ answer }: { answer: Answer }) {
  if (answer.chances.length > 0) return <TokenHeat chances={answer.chances} />;
  if (!answer.text) return null;
  return (
    <Text size="sm" className={classes.text} data-testid="answer">
      {answer.text}
    </Text>
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
