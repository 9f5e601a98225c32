import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { aMargin, someMoney } from "../test/margin";
import { renderPage } from "../test/renderPage";
import { energyText } from "./energy";
import { MarginFigures } from "./MarginFigures";
import { MarginTable } from "./MarginTable";

it("says energy in kilowatt-hours, with its cost where it has one", () => {
  expect(energyText("4500000", "0.375")).toBe("1.25 kWh of energy, $0.375 of it");
  expect(energyText("4500000", null)).toBe("1.25 kWh of energy");
  expect(energyText(null, null)).toBeNull();
});

it("shows the energy of the work and of idling apart, and none where nobody counts it", () => {
  const counted = aMargin({ total: someMoney({ energy_joules: "3600000", energy_cost: "0.3" }) });
  counted.device.idle_energy_joules = "7200000";
  counted.device.idle_energy_cost = "0.6";
  const { unmount } = renderPage(<MarginFigures total={counted.total} device={counted.device} />);
  expect(screen.getByText(/1 kWh of energy, \$0\.30 of it/)).toBeDefined();
  expect(screen.getByText(/2 kWh of energy, \$0\.60 of it/)).toBeDefined();
  unmount();
  const without = aMargin();
  renderPage(<MarginFigures total={without.total} device={without.device} />);
  expect(screen.queryByText(/kWh/)).toBeNull();
});

it("shows it in the table beside what it is a part of", () => {
  const row = { group: "ten_1", label: "Acme", tenant: "Acme", ...someMoney() };
  const counted = { ...row, group: "ten_2", label: "Globex", energy_joules: "900000" };
  renderPage(<MarginTable margin={aMargin({ data: [row, counted] })} grouping="tenant" />);
  const shown = screen.getByRole("row", { name: /Globex/ });
  expect(within(shown).getByText("0.25 kWh of energy")).toBeDefined();
  expect(within(screen.getByRole("row", { name: /Acme/ })).queryByText(/kWh/)).toBeNull();
});
