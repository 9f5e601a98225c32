const AMOUNT = /^\d{1,10}(\.\d{1,6})?$/;

/** For money a person types: it stays text from the field to the server. */
export function amountProblem(value: string): string | null {
  return AMOUNT.test(value.trim()) ? null : "Use an amount with at most 6 decimals, such as 2.50";
}

/** As `amountProblem`, but an empty field means "no limit". */
export function optionalAmountProblem(value: string): string | null {
  return value.trim() === "" ? null : amountProblem(value);
}
