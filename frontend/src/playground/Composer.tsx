import { Button, Group, Paper, Textarea } from "@mantine/core";
import { IconPlayerStop, IconSend } from "@tabler/icons-react";
import type { KeyboardEvent } from "react";
import classes from "./Playground.module.css";

interface Props {
  text: string;
  onText: (text: string) => void;
  placeholder: string;
  running: boolean;
  /** Why nothing can be sent now; null: it can. */
  problem: string | null;
  onSend: (prompt: string) => void;
  onStop: () => void;
}

export function Composer({ text, onText, placeholder, running, problem, onSend, onStop }: Props) {
  const isReady = !running && problem === null && text.trim() !== "";
  const send = () => {
    if (!isReady) return;
    onSend(text.trim());
    onText("");
  };
  const sendOnEnter = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <Paper withBorder p="sm" mt="md" shadow="sm" className={classes.composer}>
      <Group align="flex-end" wrap="nowrap" gap="sm">
        <Textarea
          aria-label="Message"
          placeholder={placeholder}
          autosize
          minRows={1}
          maxRows={6}
          flex={1}
          value={text}
          error={problem}
          onChange={(event) => onText(event.currentTarget.value)}
          onKeyDown={sendOnEnter}
        />
        {running ? (
          <Button
            variant="default"
            leftSection={<IconPlayerStop size={16} aria-hidden />}
            onClick={onStop}
          >
            Stop
          </Button>
        ) : (
          <Button
            leftSection={<IconSend size={16} aria-hidden />}
            onClick={send}
            disabled={!isReady}
          >
            Send
          </Button>
        )}
      </Group>
    </Paper>
  );
}
