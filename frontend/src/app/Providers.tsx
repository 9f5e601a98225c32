import { MantineProvider } from "@mantine/core";
import { ModalsProvider } from "@mantine/modals";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { SubmitOnce } from "../shared/SubmitOnce";
import { createQueries } from "./queryClient";
import { cssVariables, theme } from "./theme";

export function Providers({ children }: { children: ReactNode }) {
  const [queries] = useState(createQueries);
  return (
    <QueryClientProvider client={queries}>
      <MantineProvider theme={theme} cssVariablesResolver={cssVariables} defaultColorScheme="auto">
        <ModalsProvider>
          <Notifications position="top-right" />
          <SubmitOnce>{children}</SubmitOnce>
        </ModalsProvider>
      </MantineProvider>
    </QueryClientProvider>
  );
}
