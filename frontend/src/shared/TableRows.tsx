import { Table } from "@mantine/core";
import { useIntersection } from "@mantine/hooks";
import { Children, type ReactNode, useEffect, useRef, useState } from "react";

/** Rows of one piece. */
const PIECE = 50;
/** Up to here all rows are in the page: it is fast enough, and the browser's search finds them. */
const MOST_AT_ONCE = 4 * PIECE;
/** Of a row before one was shown, in pixels. */
const GUESSED_HEIGHT = 40;

/** The rows of a table. Of a long one only those around what is in sight are in the page. */
export function TableRows({ children }: { children: ReactNode }) {
  const rows = Children.toArray(children);
  const [rowHeight, setRowHeight] = useState(GUESSED_HEIGHT);
  if (rows.length <= MOST_AT_ONCE) return <Table.Tbody>{rows}</Table.Tbody>;
  return piecesOf(rows).map((piece, index) => (
    <Piece
      // biome-ignore lint/suspicious/noArrayIndexKey: a piece is a place, whatever rows are there
      key={index}
      rows={piece}
      rowHeight={rowHeight}
      onHeight={index === 0 ? setRowHeight : undefined}
    />
  ));
}

function piecesOf(rows: ReactNode[]): ReactNode[][] {
  const count = Math.ceil(rows.length / PIECE);
  return Array.from({ length: count }, (_, at) => rows.slice(at * PIECE, (at + 1) * PIECE));
}

interface PieceProps {
  rows: ReactNode[];
  rowHeight: number;
  /** Told how high a row is on average; of the first piece, which is the first to be shown. */
  onHeight: ((height: number) => void) | undefined;
}

/** As high without its rows as with them, so that nothing moves when they come and go. */
function Piece({ rows, rowHeight, onHeight }: PieceProps) {
  const { ref, entry } = useIntersection<HTMLTableSectionElement>({ rootMargin: "100% 0px" });
  const [height, setHeight] = useState<number | null>(null);
  const isFirst = onHeight !== undefined;
  const hadRows = useRef(isFirst);
  useEffect(() => {
    if (!entry) return;
    if (hadRows.current) {
      setHeight(entry.boundingClientRect.height);
      onHeight?.(entry.boundingClientRect.height / rows.length);
    }
    hadRows.current = entry.isIntersecting;
  }, [entry, onHeight, rows.length]);
  return (
    <Table.Tbody ref={ref}>
      {(entry?.isIntersecting ?? isFirst) ? (
        rows
      ) : (
        <Table.Tr aria-hidden style={{ height: height ?? rows.length * rowHeight }}>
          <Table.Td />
        </Table.Tr>
      )}
    </Table.Tbody>
  );
}
