import { fireEvent, render, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { SubmitOnce } from "./SubmitOnce";

it("takes a double click on a form's button for one, and another try for another", () => {
  const sent = vi.fn((event: { preventDefault: () => void }) => event.preventDefault());
  const more = vi.fn();
  render(
    <SubmitOnce>
      <form onSubmit={sent}>
        <button type="submit">
          <span>Issue</span>
        </button>
        <button type="button" onClick={more}>
          More
        </button>
      </form>
    </SubmitOnce>,
  );
  const issue = screen.getByText("Issue");
  fireEvent.click(issue, { detail: 1 });
  fireEvent.click(issue, { detail: 2 });
  expect(sent).toHaveBeenCalledTimes(1);
  fireEvent.click(issue, { detail: 1 });
  expect(sent).toHaveBeenCalledTimes(2);
  fireEvent.click(screen.getByText("More"), { detail: 1 });
  fireEvent.click(screen.getByText("More"), { detail: 2 });
  expect(more).toHaveBeenCalledTimes(2);
});
