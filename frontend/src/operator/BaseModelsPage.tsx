import { Anchor, Badge, Group, Table, Text } from "@mantine/core";
import { Link } from "react-router";
import type { BaseModel } from "../api/types";
import { parameters } from "../capacity/arithmetic";
import { DataTable } from "../shared/DataTable";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { formatCount, formatShort } from "../shared/numbers";
import { PageHeader } from "../shared/PageHeader";
import { useBaseModels } from "./platform";

const COLUMNS = [
  "Base model",
  { label: "Parameters", right: true, wide: true },
  { label: "Adapters", right: true },
  { label: "Versions ready", right: true, wide: true },
  { label: "Tenants", right: true, wide: true },
  "Price",
  "Room",
];

export function Component() {
  const models = useBaseModels();
  return (
    <>
      <PageHeader title="Base models">
        What the engine serves, and what adapters and prices name besides.
      </PageHeader>
      {models.isPending && <LoadingCards height={48} />}
      {models.isError && (
        <ErrorState
          error={models.error}
          what="The models could not be read"
          onRetry={() => models.refetch()}
        />
      )}
      {models.data && (
        <DataTable columns={COLUMNS} minWidth={760}>
          {models.data.map((model) => (
            <ModelRow key={model.name} model={model} />
          ))}
        </DataTable>
      )}
    </>
  );
}

function ModelRow({ model }: { model: BaseModel }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap="xs">
          <Text size="sm" fw={600}>
            {model.name}
          </Text>
          <Badge variant={model.is_served ? "light" : "default"} tt="none" size="sm">
            {model.is_served ? "served" : "not served"}
          </Badge>
        </Group>
      </Table.Td>
      <Table.Td ta="right">{model.size ? formatShort(parameters(model.size)) : "–"}</Table.Td>
      <Table.Td ta="right">{formatCount(model.adapters)}</Table.Td>
      <Table.Td ta="right">{formatCount(model.ready_versions)}</Table.Td>
      <Table.Td ta="right">{formatCount(model.tenants)}</Table.Td>
      <Table.Td>
        {model.has_price ? (
          "set"
        ) : (
          <Anchor component={Link} to="/tenants" size="sm">
            none: requests are refused
          </Anchor>
        )}
      </Table.Td>
      <Table.Td>
        {model.size && (
          <Anchor
            component={Link}
            to={`/capacity?model=${encodeURIComponent(model.name)}`}
            size="sm"
            aria-label={`Capacity of ${model.name}`}
          >
            Capacity
          </Anchor>
        )}
      </Table.Td>
    </Table.Tr>
  );
}
