import { Card, SimpleGrid, Stack, Table, Title } from "@mantine/core";
import type { Jobs } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { Figure } from "../shared/Figure";
import { LoadingCards } from "../shared/LoadingCards";
import { formatCount } from "../shared/numbers";
import { SearchField } from "../shared/SearchField";
import { formatAgo, formatDateTime } from "../shared/time";
import { useUrlState } from "../shared/useUrlState";
import { useJobs } from "./queries";
import { TaskTable } from "./TaskTable";

const NAMES = ["search"] as const;

export function TaskView() {
  const jobs = useJobs();
  if (jobs.isPending) return <LoadingCards height={80} />;
  if (jobs.isError) {
    return (
      <ErrorState
        error={jobs.error}
        what="The jobs could not be read"
        onRetry={() => jobs.refetch()}
      />
    );
  }
  return <Tasks jobs={jobs.data} />;
}

function Tasks({ jobs }: { jobs: Jobs }) {
  const [{ search }, change] = useUrlState(NAMES);
  const isWanted = ({ name }: { name: string }) => name.includes(search.toLowerCase());
  return (
    <Stack gap="lg">
      <Queues jobs={jobs} />
      {jobs.running.length > 0 && <Running running={jobs.running} />}
      <SearchField
        label="A task's name"
        value={search}
        onSearch={(text) => change({ search: text })}
      />
      <TaskTable tasks={jobs.tasks.filter(isWanted)} />
      {jobs.failures.length > 0 && <Failures failures={jobs.failures.filter(isWanted)} />}
    </Stack>
  );
}

function Queues({ jobs }: { jobs: Jobs }) {
  return (
    <Card withBorder component="section" aria-label="At work">
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }}>
        <Figure label="Running" note="now">
          {formatCount(jobs.running.length)}
        </Figure>
        {jobs.queues.map(({ name, waiting }) => (
          <Figure key={name} label={`Waiting: ${name}`} note="messages no worker has taken">
            {formatCount(waiting)}
          </Figure>
        ))}
        <Figure label="Failures kept" note="the newest 200">
          {formatCount(jobs.failures.length)}
        </Figure>
      </SimpleGrid>
    </Card>
  );
}

function Running({ running }: { running: Jobs["running"] }) {
  return (
    <Stack gap="xs">
      <Title order={2}>Running</Title>
      <DataTable columns={["Task", "Worker", "Since"]} minWidth={480}>
        {running.map(({ name, worker, since }) => (
          <Table.Tr key={`${worker} ${name} ${since}`}>
            <Table.Td fw={600}>{name}</Table.Td>
            <Table.Td>{worker}</Table.Td>
            <Table.Td>{formatAgo(since)}</Table.Td>
          </Table.Tr>
        ))}
      </DataTable>
    </Stack>
  );
}

function Failures({ failures }: { failures: Jobs["failures"] }) {
  return (
    <Stack gap="xs">
      <Title order={2}>Failed of late</Title>
      <DataTable columns={["When", "Task", "Ended as", "Raised"]} minWidth={560}>
        {failures.map(({ at, name, state, error }) => (
          <Table.Tr key={`${at} ${name}`}>
            <Table.Td style={{ whiteSpace: "nowrap" }}>{formatDateTime(at)}</Table.Td>
            <Table.Td fw={600}>{name}</Table.Td>
            <Table.Td>{state}</Table.Td>
            <Table.Td>{`${error}: the worker's log has all of it`}</Table.Td>
          </Table.Tr>
        ))}
      </DataTable>
    </Stack>
  );
}
