import { Button } from "@mantine/core";
import type { Person } from "../api/types";
import { confirmDanger, tell } from "../shared/confirm";
import { useForgetFactors } from "./people";

/** For somebody who has lost their device and their recovery codes. */
export function ForgetFactorsButton({ person }: { person: Person }) {
  const forget = useForgetFactors();
  const confirm = () =>
    confirmDanger({
      title: `Take the second factors of ${person.email} away?`,
      text: "Do this only once you know that it is them who ask. The password alone then lets them in, and every session of theirs ends.",
      confirm: "Take them away",
      onConfirm: () =>
        tell(
          forget.mutateAsync(person.id),
          `${person.email} signs in with the password alone.`,
          "Nothing was changed",
        ),
    });
  return (
    <Button
      size="compact-sm"
      variant="default"
      loading={forget.isPending}
      onClick={confirm}
      aria-label={`Take the second factors of ${person.email} away`}
    >
      Forget factors
    </Button>
  );
}
