import { Table } from "@mantine/core";
import type { ModelSize } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { formatBytes, formatCount } from "../shared/numbers";
import { adapterBytes, answer, type Question } from "./arithmetic";

const RANKS = [4, 8, 16, 32, 64, 128];
const COLUMNS = [
  "Rank",
  { label: "One adapter", right: true },
  { label: "Adapters in 1 GB", right: true },
  { label: "Sequences beside the slots", right: true },
];

/** What adapters take by rank, and what is left beside as many slots of them. */
export function RankTable({ size, question }: { size: ModelSize; question: Question }) {
  return (
    <DataTable columns={COLUMNS} minWidth={480} dense>
      {RANKS.map((rank) => (
        <Table.Tr key={rank} fw={rank === question.rank ? 650 : undefined}>
          <Table.Td>{rank}</Table.Td>
          <Table.Td ta="right">{formatBytes(adapterBytes(size, rank))}</Table.Td>
          <Table.Td ta="right">{formatCount(Math.floor(1e9 / adapterBytes(size, rank)))}</Table.Td>
          <Table.Td ta="right">
            {formatCount(answer(size, { ...question, rank }).concurrency)}
          </Table.Td>
        </Table.Tr>
      ))}
    </DataTable>
  );
}
