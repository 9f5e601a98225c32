import type { MouseEvent, ReactNode } from "react";

/** A double click on a form's button is one click: what it asks for is not done twice. */
export function SubmitOnce({ children }: { children: ReactNode }) {
  const guard = (event: MouseEvent) => {
    const isAgain = event.detail > 1; // browsers count the clicks of one quick series
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (isAgain && button?.type === "submit") {
      event.preventDefault();
      event.stopPropagation();
    }
  };
  return (
    <div style={{ display: "contents" }} onClickCapture={guard}>
      {children}
    </div>
  );
}
