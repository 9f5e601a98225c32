import { Alert, Anchor, Center, Loader, Stack } from "@mantine/core";
import { useEffect } from "react";
import { messageOf } from "../api/errors";
import { useComeBack } from "./company";
import { Doorway } from "./Doorway";

interface Props {
  /** `location.search`, as the company's page wrote it. */
  query: string;
  onDone: () => void;
}

const WORD = /^[a-z_]{1,40}$/;

/** Where a company's sign-in page sends the browser back to. */
export function CompanyReturnPage({ query, onDone }: Props) {
  const given = new URLSearchParams(query);
  const [code, state, refusal] = [given.get("code"), given.get("state"), given.get("error")];
  const back = useComeBack(code, state);
  useEffect(() => {
    if (back.isSuccess) onDone();
  }, [back.isSuccess, onDone]);
  const problem = back.isError ? messageOf(back.error) : code && state ? null : refused(refusal);
  return (
    <Doorway name="Sign in" title="Back from your company" text="One moment more.">
      {problem ? (
        <Stack>
          <Alert color="red" role="alert">
            {problem}
          </Alert>
          <Center>
            <Anchor href="/">To the sign-in page</Anchor>
          </Center>
        </Stack>
      ) : (
        <Center>
          <Loader role="status" aria-label="Signing in" />
        </Center>
      )}
    </Doorway>
  );
}

/** Others write this address: only a word of the kind that the protocol has is repeated. */
function refused(word: string | null): string {
  const said = word && WORD.test(word) ? ` (${word})` : "";
  return `Your company's sign-in page did not let you in${said}. Try again, or ask your administrator.`;
}
