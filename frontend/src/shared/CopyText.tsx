import { ActionIcon, Code, CopyButton, Group, Tooltip } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";

/** A value in monospace with a button that copies it. */
export function CopyText({ value, label }: { value: string; label: string }) {
  return (
    <Group gap={4} wrap="nowrap" miw={0}>
      <Code style={{ overflowWrap: "anywhere" }}>{value}</Code>
      <CopyIcon value={value} label={label} />
    </Group>
  );
}

export function CopyIcon({ value, label }: { value: string; label: string }) {
  return (
    <CopyButton value={value} timeout={1500}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "Copied" : label}>
          <ActionIcon
            size="sm"
            variant="subtle"
            color={copied ? "veneer" : "gray"}
            onClick={copy}
            aria-label={copied ? "Copied" : label}
          >
            {copied ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}
