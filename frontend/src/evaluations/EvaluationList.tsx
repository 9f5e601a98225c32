import { Anchor, Table } from "@mantine/core";
import { IconScale } from "@tabler/icons-react";
import type { EvaluationRow } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { ListStates } from "../shared/ListStates";
import { LoadMore } from "../shared/LoadMore";
import { formatDateTime } from "../shared/time";
import { EvaluationBadge } from "./EvaluationBadge";
import { useEvaluations } from "./queries";
import { baselineName, candidateName, tallyWords } from "./sides";

const COLUMNS = [
  "Evaluation",
  "State",
  { label: "Prompts", wide: true },
  "Differing",
  "Judged",
  { label: "Against", wide: true },
  { label: "Started", wide: true },
];
const NOTHING = {
  icon: IconScale,
  title: "No evaluations yet",
  text: "An evaluation asks two versions the same prompts, and shows their answers side by side.",
};

interface Props {
  adapterId: string;
  onOpen: (id: string) => void;
}

export function EvaluationList({ adapterId, onOpen }: Props) {
  const { list, rows } = useEvaluations(adapterId);
  return (
    <ListStates query={list} isEmpty={rows?.length === 0} what="The evaluations" nothing={NOTHING}>
      <DataTable columns={COLUMNS} minWidth={860} dense>
        {rows?.map((row) => (
          <Row key={row.id} row={row} onOpen={() => onOpen(row.id)} />
        ))}
      </DataTable>
      <LoadMore shown={rows?.length ?? 0} what="evaluation" list={list} />
    </ListStates>
  );
}

function Row({ row, onOpen }: { row: EvaluationRow; onOpen: () => void }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor component="button" type="button" fz="sm" ta="left" onClick={onOpen}>
          {`${row.prompt_set_name}: ${candidateName(row)} against ${baselineName(row)}`}
        </Anchor>
      </Table.Td>
      <Table.Td>
        <EvaluationBadge state={row.state} />
      </Table.Td>
      <Table.Td className="figures">{`${row.done} of ${row.total}`}</Table.Td>
      <Table.Td className="figures">{row.differing}</Table.Td>
      <Table.Td>{tallyWords(row.candidate_tally)}</Table.Td>
      <Table.Td>{tallyWords(row.baseline_tally)}</Table.Td>
      <Table.Td style={{ whiteSpace: "nowrap" }}>{formatDateTime(row.created_at)}</Table.Td>
    </Table.Tr>
  );
}
