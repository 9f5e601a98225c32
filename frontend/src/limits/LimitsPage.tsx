import { Stack, Text } from "@mantine/core";
import { IconGauge } from "@tabler/icons-react";
import { useTenant } from "../session/context";
import { roleCan } from "../session/permissions";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { SearchField } from "../shared/SearchField";
import { useUrlState } from "../shared/useUrlState";
import { AddLimits } from "./AddLimits";
import { LevelCard } from "./LevelCard";
import { type Settled, useLevels } from "./queries";

const NAMES = ["q"] as const;

export function Component() {
  const levels = useLevels();
  const kinds = useSettable();
  return (
    <>
      <PageHeader title="Limits" action={kinds.length > 0 && <AddLimits kinds={kinds} />}>
        What your account, its members, keys and adapters may use, what is used and reserved of it,
        and which limit binds first.
      </PageHeader>
      <Levels levels={levels} kinds={kinds} />
    </>
  );
}

/** The kinds of levels whose limits the role may set. */
function useSettable(): Settled[] {
  const { membership } = useTenant();
  const role = membership?.role ?? "viewer";
  if (roleCan(role, "limits")) return ["member", "key", "adapter"];
  return roleCan(role, "keys") ? ["key"] : [];
}

function Levels({ levels, kinds }: { levels: ReturnType<typeof useLevels>; kinds: Settled[] }) {
  const [{ q }, change] = useUrlState(NAMES);
  if (levels.isPending) return <LoadingCards height={140} />;
  if (levels.isError) {
    return (
      <ErrorState
        error={levels.error}
        what="The limits could not be read"
        onRetry={() => levels.refetch()}
      />
    );
  }
  if (levels.data.every(({ uses }) => uses.length === 0)) {
    return (
      <EmptyState icon={IconGauge} title="Nothing is limited">
        The operator limits the account as a whole. Its owners and admins may limit members, keys
        and adapters, so that none of them uses up what is for all.
      </EmptyState>
    );
  }
  const found = levels.data.filter(({ label }) => label.toLowerCase().includes(q.toLowerCase()));
  return (
    <Stack>
      <SearchField label="Search by name" value={q} onSearch={(text) => change({ q: text })} />
      {found.length === 0 && <Text c="dimmed">Nothing of this name has limits.</Text>}
      {found.map((level) => (
        <LevelCard
          key={`${level.level} ${level.id ?? level.label}`}
          level={level}
          editable={kinds.some((kind) => kind === level.level)}
        />
      ))}
    </Stack>
  );
}
