export interface Difference {
  /** As in the file; parts of objects after a dot. */
  field: string;
  /** null: it is not in that file. */
  before: string | null;
  after: string | null;
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Lists of names come in any order out of PEFT, which means nothing. */
function shown(value: unknown): string {
  const isNames = Array.isArray(value) && value.every((item) => typeof item === "string");
  return JSON.stringify(isNames ? value.toSorted() : value) ?? "";
}

function leaves(value: unknown, field: string): [string, string][] {
  if (!isFields(value) || Object.keys(value).length === 0) return [[field, shown(value)]];
  return Object.entries(value).flatMap(([name, inner]) =>
    leaves(inner, field ? `${field}.${name}` : name),
  );
}

/** What two configurations do not have in common, by field. */
export function configDiff(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
): Difference[] {
  const [old, now] = [new Map(leaves(before, "")), new Map(leaves(after, ""))];
  const fields = [...new Set([...old.keys(), ...now.keys()])].sort();
  return fields
    .map((field) => ({ field, before: old.get(field) ?? null, after: now.get(field) ?? null }))
    .filter(({ before: was, after: is }) => was !== is);
}
