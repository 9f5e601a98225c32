import type { EvaluationRow, EvaluationTally } from "../api/types";
import { plural } from "../shared/numbers";

export function candidateName({ candidate }: Pick<EvaluationRow, "candidate">): string {
  return `version ${candidate}`;
}

export function baselineName({ baseline }: Pick<EvaluationRow, "baseline">): string {
  return baseline === null ? "the base model" : `version ${baseline}`;
}

/** "3 of 4 passed", with the errors where there are any. */
export function tallyWords({ checked, passed, errors }: EvaluationTally): string {
  const checks = checked === 0 ? "no checks" : `${passed} of ${checked} passed`;
  return errors === 0 ? checks : `${checks}, ${plural(errors, "error")}`;
}
