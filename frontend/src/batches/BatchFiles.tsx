import { Group, Stack, Text, Title } from "@mantine/core";
import type { FullBatch } from "../api/types";
import { useTenant } from "../session/context";
import { CodeTabs } from "../shared/CodeTabs";
import { CopyText } from "../shared/CopyText";
import { fileExample } from "./batchExample";

/** What went in and came out. Its content belongs to the key, so a program reads it and not this page. */
export function BatchFiles({ batch }: { batch: FullBatch }) {
  const { session } = useTenant();
  const { input_file_id: input, output_file_id: output, error_file_id: errors } = batch;
  const examples = Object.entries({ Answers: output, Failures: errors }).flatMap(([name, id]) =>
    id ? [[name, fileExample(session.door_url, id)] as const] : [],
  );
  return (
    <Stack gap="xs">
      <Title order={3} size="h5">
        Files
      </Title>
      <FileLine name="Requests" id={input} />
      {examples.length > 0 && (
        <>
          <Text size="sm" c="dimmed">
            {whereWords(batch)}
          </Text>
          <CodeTabs examples={Object.fromEntries(examples)} />
        </>
      )}
    </Stack>
  );
}

function whereWords({ failed, error_file_id, key_name }: FullBatch): string {
  const failures =
    error_file_id && failed > 0 ? "Each line that failed is in the file of failures too. " : "";
  return `${failures}Only the key ${key_name} reads these files.`;
}

function FileLine({ name, id }: { name: string; id: string }) {
  return (
    <Group gap="xs">
      <Text size="sm">{name}</Text>
      <CopyText value={id} label={`Copy the id of the file of ${name.toLowerCase()}`} />
    </Group>
  );
}
