import { Alert, Button, Code, CopyButton, Group, Modal, Stack } from "@mantine/core";
import type { Person } from "../api/types";
import { notifyFailed } from "../shared/confirm";
import { useResetLink } from "./people";

/** A link to a new password, shown once: a click beside the dialogue must not lose it. */
export function ResetLinkButton({ person }: { person: Person }) {
  const issue = useResetLink();
  const link = issue.data?.link;
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        loading={issue.isPending}
        aria-label={`Link to a new password for ${person.email}`}
        onClick={() =>
          issue.mutate(person.id, {
            onError: (error) => notifyFailed("There is no link", error),
          })
        }
      >
        Reset link
      </Button>
      <Modal
        opened={link !== undefined}
        onClose={issue.reset}
        title={`A new password for ${person.email}`}
        closeOnClickOutside={false}
      >
        <Stack>
          <Alert color="yellow">
            Give them this link, by a way that you trust. It works once, for a day, and is not shown
            again. Links given out before have ended.
          </Alert>
          <Code block style={{ overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}>
            {link}
          </Code>
          <Group justify="space-between">
            <CopyButton value={link ?? ""}>
              {({ copied, copy }) => (
                <Button onClick={copy}>{copied ? "Copied" : "Copy the link"}</Button>
              )}
            </CopyButton>
            <Button variant="default" onClick={issue.reset}>
              Done
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
