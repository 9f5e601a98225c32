import { Card, EmptyState as MantineEmptyState } from "@mantine/core";
import type { Icon } from "@tabler/icons-react";
import type { ReactNode } from "react";

interface Props {
  icon: Icon;
  title: string;
  children: ReactNode;
  action?: ReactNode;
}

/** Nothing here yet: says what belongs here and what to do next. */
export function EmptyState({ icon: Icon, title, children, action }: Props) {
  return (
    <Card withBorder padding="xl">
      <MantineEmptyState
        py="xl"
        maw="32rem"
        mx="auto"
        variant="light"
        icon={<Icon stroke={1.5} aria-hidden />}
        title={title}
        description={<span style={{ textWrap: "balance" }}>{children}</span>}
      >
        {action && <MantineEmptyState.Actions>{action}</MantineEmptyState.Actions>}
      </MantineEmptyState>
    </Card>
  );
}
