import { Alert, Code, DataList, Stack } from "@mantine/core";
import { IconFileAlert } from "@tabler/icons-react";
import type { Problem, CheckReport as Report } from "../api/types";
import { plural } from "../shared/numbers";

/** Why the check refused a version: each problem with where it is, what was found, and the remedy. */
export function CheckReport({ report, number }: { report: Report; number: number }) {
  return (
    <Alert
      mt="md"
      role="group"
      color="red"
      icon={<IconFileAlert aria-hidden />}
      title={`Version ${number} was refused: ${plural(report.problems.length, "problem")}`}
    >
      <Stack gap="md">
        {report.problems.map((problem) => (
          <ProblemView
            key={`${problem.code} ${problem.where} ${problem.found}`}
            problem={problem}
          />
        ))}
      </Stack>
    </Alert>
  );
}

function ProblemView({ problem }: { problem: Problem }) {
  const rows = [
    ["Found", problem.found],
    ["Expected", problem.expected],
    ["Remedy", problem.remedy],
  ] as const;
  return (
    <div>
      <Code style={{ overflowWrap: "anywhere" }}>{problem.where}</Code>
      <DataList size="sm" gap={2} labelWidth="76px" mt={4}>
        {rows
          .filter(([, text]) => text)
          .map(([label, text]) => (
            <DataList.Item key={label}>
              <DataList.ItemLabel>{label}</DataList.ItemLabel>
              <DataList.ItemValue style={{ overflowWrap: "anywhere" }}>{text}</DataList.ItemValue>
            </DataList.Item>
          ))}
      </DataList>
    </div>
  );
}
