import { Button } from "@mantine/core";
import { IconChevronDown, IconChevronUp } from "@tabler/icons-react";
import type { ReactNode } from "react";

interface Props {
  open: boolean;
  onToggle: () => void;
  children: ReactNode;
}

/** Opens what belongs to a card, and closes it again. */
export function ToggleButton({ open, onToggle, children }: Props) {
  return (
    <Button
      variant="subtle"
      color="gray"
      size="compact-sm"
      onClick={onToggle}
      aria-expanded={open}
      rightSection={open ? <IconChevronUp size={14} /> : <IconChevronDown size={14} />}
    >
      {children}
    </Button>
  );
}
