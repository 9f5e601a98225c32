import { Stack } from "@mantine/core";
import { IconUserOff } from "@tabler/icons-react";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { SearchField } from "../shared/SearchField";
import { useUrlState } from "../shared/useUrlState";
import { PeopleTable } from "./PeopleTable";
import { usePeople } from "./people";

const NAMES = ["email"] as const;

export function Component() {
  const [{ email }, change] = useUrlState(NAMES);
  return (
    <>
      <PageHeader title="People">
        Everybody with an account. Help those who cannot get in; shut out those who should not.
      </PageHeader>
      <Stack>
        <SearchField
          label="A part of the address"
          value={email}
          onSearch={(text) => change({ email: text })}
        />
        <Found email={email} />
      </Stack>
    </>
  );
}

function Found({ email }: { email: string }) {
  const people = usePeople(email);
  if (people.isPending) return <LoadingCards height={48} />;
  if (people.isError) {
    return (
      <ErrorState
        error={people.error}
        what="The people could not be read"
        onRetry={() => people.refetch()}
      />
    );
  }
  if (people.data.length === 0) {
    return (
      <EmptyState icon={IconUserOff} title="Nobody has such an address">
        Look for a shorter part of it.
      </EmptyState>
    );
  }
  return <PeopleTable people={people.data} />;
}
