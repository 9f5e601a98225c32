import { diffWordsWithSpace } from "diff";

export interface Part {
  text: string;
  /** Only in this text, not in the other. */
  isOwn: boolean;
}

/** Two texts without a word in common take quadratic time: such a pair is shown as it is. */
const LONGEST_MS = 200;

/** A text in parts, word by word: those that the other text has too, and those that it has alone. */
export function partsOf(text: string, other: string): Part[] {
  const found = diffWordsWithSpace(other, text, { timeout: LONGEST_MS });
  if (!found) return [{ text, isOwn: false }];
  return found.flatMap(({ value, added, removed }) =>
    removed ? [] : [{ text: value, isOwn: added }],
  );
}
