import { Button, Group, Paper, Textarea } from "@mantine/core";
import { IconPlayerStop, IconSend } from "@tabler/icons-react";
import { type KeyboardEvent, useState } from "react";
import classes from "./Playground.module.css";

interface Props {
  running: boolean;
  onSend: (prompt: string) => void;
  onStop: () => void;
}

export function Composer({ running, onSend, onStop }: Props) {
  const [text, setText] = useState("");
  const send = () => {
    if (running || text.trim() === "") return;
    onSend(text.trim());
    setText("");
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
          placeholder="Ask something (Enter sends)"
          autosize
          minRows={1}
          maxRows={6}
          flex={1}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
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
            disabled={text.trim() === ""}
          >
            Send
          </Button>
        )}
      </Group>
    </Paper>
  );
}
