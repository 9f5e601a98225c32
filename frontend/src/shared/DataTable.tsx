import { Card, Table, VisuallyHidden } from "@mantine/core";
import type { ReactNode } from "react";
import classes from "./DataTable.module.css";
import { TableRows } from "./TableRows";

export interface Column {
  label: string;
  /** Numbers stand under each other. */
  right?: boolean;
  /** For screen readers only: what the buttons of a row need no heading for. */
  hidden?: boolean;
  /** Left out on a phone, for want of room; one of the second to the ninth. */
  wide?: boolean;
}

/** The last one: it stays in sight where a table is wider than a phone. */
export const ACTIONS: Column = { label: "Actions", hidden: true };

interface Props {
  columns: (string | Column)[];
  /** Pixels; where there is less room the table scrolls sideways, the page does not. A phone goes by its words. */
  minWidth: number;
  /** `Table.Tr`, one per row. */
  children: ReactNode;
  /** `Table.Tr` under the rows, for sums. */
  foot?: ReactNode;
  /** In a card of its caller's, rather than one of its own. */
  bare?: boolean;
  dense?: boolean;
  /** Without room at the left and right, for a table in a padded card. */
  flush?: boolean;
}

/** The frame of every table: its card, its head, and its way to be wider than a phone. */
export function DataTable({ columns: named, minWidth, children, foot, bare, dense, flush }: Props) {
  const columns: Column[] = named.map((column) =>
    typeof column === "string" ? { label: column } : column,
  );
  const wide = columns.flatMap((column, at) => (column.wide ? [at + 1] : []));
  const table = (
    <Table.ScrollContainer minWidth={minWidth} className={classes.frame}>
      <Table
        className={columns.at(-1) === ACTIONS ? `${classes.table} ${classes.deeds}` : classes.table}
        data-wide={wide.join(" ")}
        data-edges={!flush || undefined}
        verticalSpacing={dense ? "xs" : "sm"}
        horizontalSpacing={flush ? "xs" : "sm"}
        fz="sm"
      >
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => (
              <Head key={column.label} column={column} />
            ))}
          </Table.Tr>
        </Table.Thead>
        <TableRows>{children}</TableRows>
        {foot && <Table.Tfoot>{foot}</Table.Tfoot>}
      </Table>
    </Table.ScrollContainer>
  );
  if (bare) return table;
  return (
    <Card withBorder padding={0}>
      {table}
    </Card>
  );
}

function Head({ column }: { column: Column }) {
  return (
    <Table.Th ta={column.right ? "right" : undefined}>
      {column.hidden ? <VisuallyHidden>{column.label}</VisuallyHidden> : column.label}
    </Table.Th>
  );
}
