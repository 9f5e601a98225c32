import { memo } from "react";
import classes from "./DifferingText.module.css";
import { partsOf } from "./differing";

interface Props {
  text: string;
  /** What the other side answered. */
  other: string;
}

/** An answer, with the words marked that the other one has not. */
function DifferingText({ text, other }: Props) {
  return partsOf(text, other).map((part, index) =>
    part.isOwn ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of two texts never change
      <mark key={index} className={classes.own}>
        {part.text}
      </mark>
    ) : (
      part.text
    ),
  );
}

/** The same pair comes again with every look at an evaluation that runs. */
export default memo(DifferingText);
