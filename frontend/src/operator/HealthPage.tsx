import { Badge, Button, Table } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import type { Health } from "../api/types";
import { DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatCount } from "../shared/numbers";
import { PageHeader } from "../shared/PageHeader";
import { useHealth } from "./platform";

type Part = Health["parts"][number];

const COLORS: Record<Part["state"], string> = { up: "veneer", degraded: "orange", down: "red" };
const ORDER: Part["state"][] = ["down", "degraded", "up"];
const COLUMNS = [
  "Part",
  "State",
  "What it says",
  { label: "Answered in", right: true, wide: true },
];

export function Component() {
  const health = useHealth();
  const again = (
    <Button
      variant="default"
      leftSection={<IconRefresh size={16} aria-hidden />}
      onClick={() => health.refetch()}
      loading={health.isFetching}
    >
      Look again
    </Button>
  );
  return (
    <>
      <PageHeader title="Health" action={again}>
        Whether each part of the platform answers. Looked at anew every 15 seconds.
      </PageHeader>
      {health.isPending && <LoadingCards height={48} />}
      {health.isError && (
        <ErrorState
          error={health.error}
          what="The health could not be read"
          onRetry={() => health.refetch()}
        />
      )}
      {health.data && <PartTable parts={health.data.parts} />}
    </>
  );
}

/** What needs a look comes first. */
function PartTable({ parts }: { parts: Part[] }) {
  const sorted = [...parts].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
  return (
    <DataTable columns={COLUMNS} minWidth={620}>
      {sorted.map((part) => (
        <Table.Tr key={part.name}>
          <Table.Td fw={600}>{part.name}</Table.Td>
          <Table.Td>
            <Badge variant="light" color={COLORS[part.state]} tt="none">
              {part.state}
            </Badge>
          </Table.Td>
          <Table.Td>{part.detail}</Table.Td>
          <Table.Td ta="right">{`${formatCount(Math.round(part.milliseconds))} ms`}</Table.Td>
        </Table.Tr>
      ))}
    </DataTable>
  );
}
