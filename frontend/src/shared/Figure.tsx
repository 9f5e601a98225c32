import { Text } from "@mantine/core";
import type { ReactNode } from "react";

/** A number with its name above and what it is of below. */
export function Figure({
  label,
  note,
  children,
}: {
  label: string;
  note?: ReactNode;
  children: string;
}) {
  return (
    <div>
      <Text size="sm" c="dimmed" fw={500}>
        {label}
      </Text>
      <Text fz={{ base: "1.25rem", sm: "1.5rem" }} fw={650} lh={1.3} className="figures">
        {children}
      </Text>
      {note && (
        <Text size="xs" c="dimmed" component="div" className="figures">
          {note}
        </Text>
      )}
    </div>
  );
}
