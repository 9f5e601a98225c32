const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** null for a name that programs can send as the model. */
export function nameProblem(value: string): string | null {
  return NAME.test(value)
    ? null
    : "Use lower-case letters, digits and dashes, such as support-bot; at most 63";
}
