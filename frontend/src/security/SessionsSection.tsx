import { Badge, Button, Group, Table, Text } from "@mantine/core";
import type { OpenSession } from "../api/types";
import { confirmDanger, tell } from "../shared/confirm";
import { ACTIONS, DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatAgo, formatDateTime } from "../shared/time";
import { useEndOthers, useEndSession, useSessions } from "./queries";
import { Section } from "./Section";

export function SessionsSection() {
  const sessions = useSessions();
  const others = sessions.data?.some((session) => !session.is_this) ?? false;
  return (
    <Section
      title="Sessions"
      text="Where you are signed in. End those that you do not know, then change your password."
      action={others && <EndOthersButton />}
    >
      {sessions.isPending && <LoadingCards height={48} />}
      {sessions.isError && (
        <ErrorState
          error={sessions.error}
          what="Your sessions could not be read"
          onRetry={() => sessions.refetch()}
        />
      )}
      {sessions.data && <SessionTable sessions={sessions.data} />}
    </Section>
  );
}

const COLUMNS = [
  "Device",
  "Address",
  { label: "Signed in", wide: true },
  { label: "Last seen", wide: true },
  ACTIONS,
];

function SessionTable({ sessions }: { sessions: OpenSession[] }) {
  return (
    <DataTable columns={COLUMNS} minWidth={600} bare flush>
      {sessions.map((session) => (
        <Table.Tr key={session.id}>
          <Table.Td>
            <Group gap="xs">
              <Text size="sm" fw={600}>
                {session.device}
              </Text>
              {session.is_this && (
                <Badge variant="default" tt="none" size="sm">
                  this one
                </Badge>
              )}
            </Group>
          </Table.Td>
          <Table.Td>{session.address}</Table.Td>
          <Table.Td>{formatDateTime(session.created_at)}</Table.Td>
          <Table.Td>{session.seen_at && formatAgo(session.seen_at)}</Table.Td>
          <Table.Td ta="right">{!session.is_this && <EndButton session={session} />}</Table.Td>
        </Table.Tr>
      ))}
    </DataTable>
  );
}

function EndButton({ session }: { session: OpenSession }) {
  const end = useEndSession();
  return (
    <Button
      size="compact-sm"
      variant="subtle"
      color="red"
      loading={end.isPending}
      aria-label={`End the session of ${session.device} at ${session.address}`}
      onClick={() =>
        tell(
          end.mutateAsync(session.id),
          `${session.device} is signed out.`,
          "The session was not ended",
        )
      }
    >
      End
    </Button>
  );
}

function EndOthersButton() {
  const end = useEndOthers();
  const confirm = () =>
    confirmDanger({
      title: "End all other sessions?",
      text: "Every browser but this one is signed out at once.",
      confirm: "End them",
      onConfirm: () =>
        tell(
          end.mutateAsync(undefined),
          "You are signed in here only.",
          "The sessions were not ended",
        ),
    });
  return (
    <Button variant="default" onClick={confirm} loading={end.isPending}>
      End all others
    </Button>
  );
}
