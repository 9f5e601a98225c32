import { Table } from "@mantine/core";
import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { renderPage } from "../test/renderPage";
import { ACTIONS, DataTable } from "./DataTable";

it("names every column, also those that need no heading to be seen", () => {
  renderPage(
    <DataTable
      columns={["Name", { label: "Size", right: true, wide: true }, ACTIONS]}
      minWidth={300}
      foot={
        <Table.Tr>
          <Table.Td>Total</Table.Td>
        </Table.Tr>
      }
    >
      <Table.Tr>
        <Table.Td>pirate</Table.Td>
      </Table.Tr>
    </DataTable>,
  );
  expect(screen.getByRole("table").dataset).toMatchObject({ wide: "2" });
  const heads = screen.getAllByRole("columnheader").map((head) => head.textContent);
  expect(heads).toEqual(["Name", "Size", "Actions"]);
  expect(screen.getAllByRole("row").map((row) => row.textContent)).toEqual([
    "NameSizeActions",
    "pirate",
    "Total",
  ]);
});
