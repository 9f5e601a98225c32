import { Button, Card, Modal, Table, Text, Title } from "@mantine/core";
import { useState } from "react";
import { ACTIONS, type Column, DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatExactMoney, formatMoney } from "../shared/money";
import { formatCompact, formatCount } from "../shared/numbers";
import { formatPeriod } from "../shared/time";
import { type Earning, type Earnings, useEarnings, useStatement } from "./earnings";

type Period = Earnings["closed"][number] & { days: string };

const COLUMNS: (string | Column)[] = [
  "Adapter",
  "Tenant",
  { label: "Requests", right: true },
  { label: "Tokens", right: true },
  { label: "You earned", right: true },
];
const PERIODS: (string | Column)[] = ["Period", { label: "You earned", right: true }, ACTIONS];

/** What mark-ups on shared adapters brought in; nothing where they never did. */
export function EarningsCard() {
  const [shown, show] = useState<Period | null>(null);
  const earnings = useEarnings();
  if (earnings.isError) {
    return (
      <ErrorState
        error={earnings.error}
        what="What your adapters earned could not be read"
        onRetry={() => earnings.refetch()}
      />
    );
  }
  if (!earnings.data || (earnings.data.data.length === 0 && earnings.data.closed.length === 0)) {
    return null;
  }
  return (
    <Card withBorder padding={0} component="section" aria-label="Earned by sharing">
      <Title order={2} p="md" pb={4}>
        Earned by sharing
      </Title>
      <Text px="md" pb="sm" size="sm" c="dimmed">
        Your part of what others pay on top for your adapters. It becomes credit when your period is
        closed.
      </Text>
      <EarningTable rows={earnings.data.data} total={earnings.data.total} />
      {earnings.data.closed.length > 0 && (
        <Periods periods={periodsOf(earnings.data)} onShow={show} />
      )}
      {shown && <PeriodModal period={shown} onClose={() => show(null)} />}
    </Card>
  );
}

function EarningTable({ rows, total }: { rows: Earning[]; total: string }) {
  const foot = (
    <Table.Tr fw={600}>
      <Table.Td colSpan={4}>Since your last statement</Table.Td>
      <Table.Td ta="right" className="figures">
        {formatExactMoney(total)}
      </Table.Td>
    </Table.Tr>
  );
  return (
    <DataTable columns={COLUMNS} minWidth={560} bare dense foot={foot}>
      <EarningRows rows={rows} />
    </DataTable>
  );
}

function EarningRows({ rows }: { rows: Earning[] }) {
  return rows.map((row) => (
    <Table.Tr key={`${row.adapter_id} ${row.grantee}`}>
      <Table.Td>{row.label}</Table.Td>
      <Table.Td>{row.grantee}</Table.Td>
      <Table.Td ta="right" className="figures">
        {formatCount(row.requests)}
      </Table.Td>
      <Table.Td ta="right" className="figures">
        {formatCompact(row.tokens)}
      </Table.Td>
      <Table.Td ta="right" className="figures">
        {formatExactMoney(row.amount)}
      </Table.Td>
    </Table.Tr>
  ));
}

function periodsOf({ closed, time_zone }: Earnings): Period[] {
  return closed.map((period) => ({
    ...period,
    days: formatPeriod(period.period_start, period.period_end, time_zone),
  }));
}

function Periods({ periods, onShow }: { periods: Period[]; onShow: (period: Period) => void }) {
  return (
    <DataTable columns={PERIODS} minWidth={420} bare dense>
      {periods.map((period) => (
        <Table.Tr key={period.statement_id}>
          <Table.Td>{period.days}</Table.Td>
          <Table.Td ta="right" className="figures">
            {formatMoney(period.earned)}
          </Table.Td>
          <Table.Td ta="right">
            <Button
              size="compact-xs"
              variant="default"
              onClick={() => onShow(period)}
              aria-label={`From whom, ${period.days}`}
            >
              From whom
            </Button>
          </Table.Td>
        </Table.Tr>
      ))}
    </DataTable>
  );
}

function PeriodModal({ period, onClose }: { period: Period; onClose: () => void }) {
  const statement = useStatement(period.statement_id);
  return (
    <Modal opened onClose={onClose} title={`Earned ${period.days}`} size="lg">
      {statement.isPending && <LoadingCards count={1} height={120} />}
      {statement.isError && (
        <ErrorState
          error={statement.error}
          what="The statement could not be read"
          onRetry={() => statement.refetch()}
        />
      )}
      {statement.data && (
        <DataTable columns={COLUMNS} minWidth={520} bare dense flush>
          <EarningRows rows={statement.data.earnings} />
        </DataTable>
      )}
    </Modal>
  );
}
