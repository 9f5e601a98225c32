import { SegmentedControl, Stack } from "@mantine/core";
import { PageHeader } from "../shared/PageHeader";
import { useUrlState } from "../shared/useUrlState";
import { BatchList } from "./BatchList";
import { IncomingList } from "./IncomingList";
import { TaskView } from "./TaskView";

const NAMES = ["show", "search", "state", "status"] as const;
const SHOWN = [
  { value: "", label: "Tasks" },
  { value: "adapters", label: "Adapters on their way" },
  { value: "batches", label: "Batches" },
];

export function Component() {
  const [{ show }, change] = useUrlState(NAMES);
  const shown = SHOWN.some(({ value }) => value === show) ? show : "";
  return (
    <>
      <PageHeader title="Jobs">
        Work in the background: what runs and waits, how it went, and which adapters are on their
        way in.
      </PageHeader>
      <Stack>
        <SegmentedControl
          aria-label="Which"
          data={SHOWN}
          value={shown}
          onChange={(value) => change({ show: value, search: "", state: "", status: "" })}
          maw="100%"
          w="fit-content"
        />
        {shown === "adapters" && <IncomingList />}
        {shown === "batches" && <BatchList />}
        {shown === "" && <TaskView />}
      </Stack>
    </>
  );
}
