import { Anchor, Card, Group, Stack, Text, ThemeIcon, Title } from "@mantine/core";
import { IconCheck, IconCircleDashed } from "@tabler/icons-react";
import { Link } from "react-router";
import { useParts } from "./queries";

interface Step {
  label: string;
  to: string;
  done: boolean;
}

/** Ticks itself by what is there, and is gone when all of it is. */
export function FirstSteps() {
  const { adapters, keys } = useParts();
  if (!adapters.data || !keys.data) return null;
  const steps: Step[] = [
    {
      label: "Upload an adapter that passes its check",
      to: "/adapters",
      done: adapters.data.some(({ versions }) => versions.some(({ state }) => state === "ready")),
    },
    { label: "Issue an API key", to: "/keys", done: keys.data.length > 0 },
    {
      label: "Call a model with it",
      to: "/keys",
      done: keys.data.some(({ last_used_at }) => last_used_at !== null),
    },
  ];
  if (steps.every(({ done }) => done)) return null;
  return (
    <Card withBorder>
      <Title order={2} mb="sm">
        First steps
      </Title>
      <Stack gap="xs" m={0} p={0} renderRoot={(props) => <ul {...props} />}>
        {steps.map((step) => (
          <StepItem key={step.label} step={step} />
        ))}
      </Stack>
    </Card>
  );
}

function StepItem({ step: { label, to, done } }: { step: Step }) {
  return (
    <Group gap="xs" wrap="nowrap" renderRoot={(props) => <li {...props} />}>
      <ThemeIcon
        size={22}
        radius="xl"
        variant="light"
        color={done ? "veneer" : "gray"}
        role="img"
        aria-label={done ? "Done" : "To do"}
      >
        {done ? <IconCheck size={14} /> : <IconCircleDashed size={14} />}
      </ThemeIcon>
      {done ? (
        <Text size="sm" c="dimmed" td="line-through">
          {label}
        </Text>
      ) : (
        <Anchor component={Link} to={to} size="sm">
          {label}
        </Anchor>
      )}
    </Group>
  );
}
