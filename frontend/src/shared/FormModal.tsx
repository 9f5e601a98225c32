import { Alert, Button, Group, Modal, Stack } from "@mantine/core";
import type { FormEventHandler, ReactNode } from "react";
import { messageOf } from "../api/errors";

interface Props {
  title: string;
  opened: boolean;
  onClose: () => void;
  onSubmit: FormEventHandler<HTMLFormElement>;
  submit: string;
  pending: boolean;
  error: unknown;
  children: ReactNode;
}

/** A dialogue with one form: its fields, the server's refusal above them, cancel and submit below. */
export function FormModal(props: Props) {
  return (
    <Modal opened={props.opened} onClose={props.onClose} title={props.title}>
      <form onSubmit={props.onSubmit} noValidate>
        <Stack>
          {props.error ? (
            <Alert color="red" role="alert">
              {messageOf(props.error)}
            </Alert>
          ) : null}
          {props.children}
          <Group justify="flex-end">
            <Button variant="default" onClick={props.onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={props.pending}>
              {props.submit}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
