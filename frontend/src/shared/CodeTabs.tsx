import { Code, Group, Tabs } from "@mantine/core";
import { CopyIcon } from "./CopyText";

/** The same call in several languages, each with a button that copies it. */
export function CodeTabs({ examples }: { examples: Record<string, string> }) {
  return (
    <Tabs defaultValue={Object.keys(examples)[0] ?? null}>
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
  );
}
