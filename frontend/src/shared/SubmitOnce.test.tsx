import { fireEvent, render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { SubmitOnce } from "./SubmitOnce";

it("takes two submits at once for one, of each form", () => {
  const sent = vi.fn((event: { preventDefault: () => void }) => event.preventDefault());
  render(
    <SubmitOnce>
      <form aria-label="first" onSubmit={sent} />
      <form aria-label="second" onSubmit={sent} />
    </SubmitOnce>,
  );
  const first = screen.getByRole("form", { name: "first" });
  fireEvent.submit(first);
  fireEvent.submit(first);
  expect(sent).toHaveBeenCalledTimes(1);
  fireEvent.submit(screen.getByRole("form", { name: "second" }));
  expect(sent).toHaveBeenCalledTimes(2);
});
