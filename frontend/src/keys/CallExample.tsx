import { Card, Code, Group, Tabs, Title } from "@mantine/core";
import { CopyIcon } from "../shared/CopyText";

interface Props {
  doorUrl: string;
  model: string;
}

/** How a program uses a key; works as pasted once the key is filled in. */
export function CallExample({ doorUrl, model }: Props) {
  const examples = { curl: curlExample(doorUrl, model), Python: pythonExample(doorUrl, model) };
  return (
    <Card withBorder mt="lg">
      <Title order={2} mb="xs">
        Call it
      </Title>
      <Tabs defaultValue="curl">
        <Tabs.List>
          {Object.keys(examples).map((name) => (
            <Tabs.Tab key={name} value={name}>
              {name}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {Object.entries(examples).map(([name, text]) => (
          <Tabs.Panel key={name} value={name} pt="sm">
            <Group align="flex-start" wrap="nowrap" gap="xs">
              <Code block fz="xs" flex={1} miw={0} tabIndex={0}>
                {text}
              </Code>
              <CopyIcon value={text} label={`Copy the ${name} example`} />
            </Group>
          </Tabs.Panel>
        ))}
      </Tabs>
    </Card>
  );
}

/** The door's address without `/v1`, whichever way the server spells it. */
function doorBase(doorUrl: string): string {
  return doorUrl.replace(/\/+$/, "").replace(/\/v1$/, "");
}

function curlExample(doorUrl: string, model: string): string {
  return `curl ${doorBase(doorUrl)}/v1/chat/completions \\
  -H "Authorization: Bearer $VENEER_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`;
}

function pythonExample(doorUrl: string, model: string): string {
  return `import os
from openai import OpenAI

client = OpenAI(base_url="${doorBase(doorUrl)}/v1", api_key=os.environ["VENEER_API_KEY"])
answer = client.chat.completions.create(
    model="${model}",  # or the name of one of your adapters
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`;
}
