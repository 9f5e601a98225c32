import { Card, Title } from "@mantine/core";
import { CodeTabs } from "../shared/CodeTabs";
import { callExamples } from "../shared/callExamples";

interface Props {
  doorUrl: string;
  model: string;
}

/** How a program uses a key; works as pasted once the key is filled in. */
export function CallExample({ doorUrl, model }: Props) {
  const body = { model, messages: [{ role: "user", content: "Hello" }] };
  return (
    <Card withBorder mt="lg">
      <Title order={2} mb="xs">
        Call it
      </Title>
      <CodeTabs examples={callExamples(doorUrl, "/v1/chat/completions", body)} />
    </Card>
  );
}
