import { Stack, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconSearch, IconUserOff } from "@tabler/icons-react";
import { useState } from "react";
import { EmptyState } from "../shared/EmptyState";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { PageHeader } from "../shared/PageHeader";
import { PeopleTable } from "./PeopleTable";
import { usePeople } from "./people";

export function Component() {
  const [email, setEmail] = useState("");
  const [wanted] = useDebouncedValue(email, 250);
  return (
    <>
      <PageHeader title="People">
        Everybody with an account. Help those who cannot get in; shut out those who should not.
      </PageHeader>
      <Stack>
        <TextInput
          aria-label="A part of the address"
          placeholder="A part of the address"
          leftSection={<IconSearch size={16} aria-hidden />}
          maw={320}
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
        />
        <Found email={wanted} />
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
