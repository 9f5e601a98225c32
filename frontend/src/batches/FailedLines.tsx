import { Code, Stack, Table, Text, Title } from "@mantine/core";
import type { BatchLine, FullBatch } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { ListStates } from "../shared/ListStates";
import { LoadMore } from "../shared/LoadMore";
import { useFailedLines } from "./queries";

const COLUMNS = [{ label: "Line", right: true }, "custom_id", "Why", "Code"];

/** The lines that were answered with an error, each with the error. */
export function FailedLines({ batch }: { batch: FullBatch }) {
  if (batch.failed === 0) return null;
  return (
    <Stack gap="xs" component="section" aria-label="Lines that failed">
      <Title order={3} size="h5">
        Lines that failed
      </Title>
      <List batch={batch} />
    </Stack>
  );
}

function List({ batch }: { batch: FullBatch }) {
  const { list, rows } = useFailedLines(batch);
  return (
    <ListStates query={list} what="The lines">
      <DataTable columns={COLUMNS} minWidth={560} bare dense flush>
        {rows?.map((line) => (
          <Line key={line.number} line={line} />
        ))}
      </DataTable>
      <LoadMore shown={rows?.length ?? 0} what="line" list={list} />
    </ListStates>
  );
}

function Line({ line: { number, custom_id, failure } }: { line: BatchLine }) {
  return (
    <Table.Tr>
      <Table.Td ta="right">{number}</Table.Td>
      <Table.Td style={{ overflowWrap: "anywhere" }}>{custom_id}</Table.Td>
      <Table.Td style={{ overflowWrap: "anywhere" }}>
        {failure?.message ?? "See the file of failures."}
        {failure?.param && (
          <Text size="xs" c="dimmed">
            {failure.param}
          </Text>
        )}
      </Table.Td>
      <Table.Td style={{ whiteSpace: "nowrap" }}>
        {failure && <Code>{[failure.status, failure.code].filter(Boolean).join(" ")}</Code>}
      </Table.Td>
    </Table.Tr>
  );
}
