import { Box, Card, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { ColorSchemeToggle } from "../app/ColorSchemeToggle";
import { Mark } from "../brand/Brand";
import { useDocumentName } from "../shared/useDocumentName";
import classes from "./Doorway.module.css";

interface Props {
  name: string;
  title: string;
  text: string;
  children: ReactNode;
}

/** The card that people see before they are inside. */
export function Doorway({ name, title, text, children }: Props) {
  useDocumentName(name);
  return (
    <main className={classes.page}>
      <Box pos="absolute" top={16} right={16}>
        <ColorSchemeToggle />
      </Box>
      <Card withBorder shadow="sm" padding="xl" radius="lg" className={classes.card}>
        <Stack gap={4} align="center" mb="lg">
          <Mark size={44} />
          <Title order={1} mt="xs" ta="center">
            {title}
          </Title>
          <Text c="dimmed" size="sm" ta="center" style={{ textWrap: "balance" }}>
            {text}
          </Text>
        </Stack>
        {children}
      </Card>
    </main>
  );
}
