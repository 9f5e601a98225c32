import { screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { WorkspaceProvider } from "../session/WorkspaceProvider";
import { renderPage } from "../test/renderPage";
import { aSession } from "../test/samples";
import { AmountInput } from "./AmountInput";
import { formatMoney, setCurrency } from "./money";

afterEach(() => setCurrency("USD"));

function Amounts() {
  return (
    <>
      <AmountInput label="Amount" />
      <p>{formatMoney("12.5")}</p>
    </>
  );
}

it.each([
  ["USD", "$"],
  ["EUR", "€"],
])("of the session stands on every page, and in the fields for amounts: %s", (currency, symbol) => {
  const { container } = renderPage(
    <WorkspaceProvider session={aSession({ currency })}>
      <Amounts />
    </WorkspaceProvider>,
  );
  expect(screen.getByText(`${symbol}12.50`)).toBeDefined();
  const { textContent } = container;
  expect(textContent.slice(textContent.lastIndexOf("Amount"))).toBe(
    `Amount${symbol}${symbol}12.50`,
  );
});
