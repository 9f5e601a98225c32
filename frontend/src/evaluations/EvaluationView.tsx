import {
  Alert,
  Button,
  Group,
  Progress,
  SegmentedControl,
  Stack,
  Text,
  Title,
} from "@mantine/core";
import { IconArrowLeft } from "@tabler/icons-react";
import type { Evaluation } from "../api/types";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { CaseCard } from "./CaseCard";
import { EvaluationActions } from "./EvaluationActions";
import { EvaluationBadge } from "./EvaluationBadge";
import { useEvaluation } from "./queries";
import { baselineName, candidateName, tallyWords } from "./sides";

interface Props {
  id: string;
  canWrite: boolean;
  onlyDiffering: boolean;
  onOnlyDiffering: (only: boolean) => void;
  onBack: () => void;
}

/** One evaluation as far as it is. */
export function EvaluationView({ id, ...props }: Props) {
  const evaluation = useEvaluation(id);
  return (
    <Stack>
      <Button
        variant="subtle"
        color="gray"
        size="compact-sm"
        w="fit-content"
        leftSection={<IconArrowLeft size={14} aria-hidden />}
        onClick={props.onBack}
      >
        All evaluations
      </Button>
      {evaluation.isPending && <LoadingCards />}
      {evaluation.isError && (
        <ErrorState
          error={evaluation.error}
          what="The evaluation could not be read"
          onRetry={() => evaluation.refetch()}
        />
      )}
      {evaluation.isSuccess && <Found evaluation={evaluation.data} {...props} />}
    </Stack>
  );
}

function Found({ evaluation, ...props }: Omit<Props, "id"> & { evaluation: Evaluation }) {
  const shown = evaluation.cases.filter(({ differs }) => differs || !props.onlyDiffering);
  return (
    <>
      <Group justify="space-between">
        <Group gap="xs">
          <Title order={2} size="h4">
            {`${evaluation.prompt_set_name}: ${candidateName(evaluation)} against ${baselineName(evaluation)}`}
          </Title>
          <EvaluationBadge state={evaluation.state} />
        </Group>
        {props.canWrite && <EvaluationActions evaluation={evaluation} onDeleted={props.onBack} />}
      </Group>
      <Summary evaluation={evaluation} />
      <SegmentedControl
        size="xs"
        w="fit-content"
        aria-label="Which prompts"
        data={[
          { value: "", label: "All prompts" },
          { value: "differing", label: `Differing (${evaluation.differing})` },
        ]}
        value={props.onlyDiffering ? "differing" : ""}
        onChange={(value) => props.onOnlyDiffering(value === "differing")}
      />
      {shown.length === 0 && (
        <Text size="sm" c="dimmed">
          {evaluation.cases.length === 0 ? "No prompt is answered yet." : "No answers differ."}
        </Text>
      )}
      {shown.map((found) => (
        <CaseCard key={found.number} evaluation={evaluation} found={found} />
      ))}
    </>
  );
}

function Summary({ evaluation }: { evaluation: Evaluation }) {
  const { done, total, failure } = evaluation;
  return (
    <Stack gap={6}>
      {failure && (
        <Alert color="red" title={failure.code} role="group">
          {failure.message}
        </Alert>
      )}
      <Progress
        value={total > 0 ? (100 * done) / total : 0}
        aria-label={`${done} of ${total} prompts are done`}
      />
      <Text size="sm" c="dimmed" className="figures">
        {[
          `${done} of ${total} prompts`,
          `${evaluation.differing} with differing answers`,
          `${candidateName(evaluation)}: ${tallyWords(evaluation.candidate_tally)}`,
          `${baselineName(evaluation)}: ${tallyWords(evaluation.baseline_tally)}`,
        ].join(" · ")}
      </Text>
    </Stack>
  );
}
