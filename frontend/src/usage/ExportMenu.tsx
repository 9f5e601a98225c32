import { Button, Menu } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import type { Usage } from "../api/types";
import { notifyFailed } from "../shared/confirm";
import { downloadText } from "../shared/csv";
import { usageCsv, usageFileName } from "./export";
import { useGenerationsExport } from "./queries";
import type { UsageView } from "./useUsageView";

/** What is shown as files: the sums as the server sent them, or every generation they are of. */
export function ExportMenu({ usage, view }: { usage: Usage; view: UsageView }) {
  const generations = useGenerationsExport(view.range, view.only, view.outcome);
  const name = (ending: "csv" | "json") => usageFileName(usage, view.grouping, ending);
  const saveCsv = () => downloadText(name("csv"), usageCsv(usage, view.grouping), "text/csv");
  const saveJson = () =>
    downloadText(name("json"), JSON.stringify(usage, null, 2), "application/json");
  const saveAll = (as: "csv" | "jsonl") =>
    generations.mutate(as, {
      onError: (error) => notifyFailed("The generations were not exported", error),
    });
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconDownload size={14} aria-hidden />}
          loading={generations.isPending}
        >
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>This table</Menu.Label>
        <Menu.Item onClick={saveCsv}>CSV</Menu.Item>
        <Menu.Item onClick={saveJson}>JSON</Menu.Item>
        <Menu.Label>Every generation</Menu.Label>
        <Menu.Item onClick={() => saveAll("csv")}>Generations as CSV</Menu.Item>
        <Menu.Item onClick={() => saveAll("jsonl")}>Generations as JSON lines</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
