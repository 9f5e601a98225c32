import { type FormEvent, type ReactNode, useRef } from "react";

const AGAIN_MS = 500;

/** A double click on a form's button is one click: what it asks for is not done twice. */
export function SubmitOnce({ children }: { children: ReactNode }) {
  const last = useRef<{ form: EventTarget; at: number } | null>(null);
  const guard = (event: FormEvent) => {
    const { target: form, timeStamp: at } = event;
    if (last.current?.form === form && at - last.current.at < AGAIN_MS) {
      event.preventDefault();
      event.stopPropagation();
    } else {
      last.current = { form, at };
    }
  };
  return (
    <div style={{ display: "contents" }} onSubmitCapture={guard}>
      {children}
    </div>
  );
}
