import { useCallback, useMemo } from "react";
import { useSearchParams } from "react-router";

/** Text values that live in the page's address, so that a view can be shared and reloaded. Empty ones are left out. */
export function useUrlState<Name extends string>(names: readonly Name[]) {
  const [params, setParams] = useSearchParams();
  const values = useMemo(
    () =>
      Object.fromEntries(names.map((name) => [name, params.get(name) ?? ""])) as Record<
        Name,
        string
      >,
    [params, names],
  );
  const change = useCallback(
    (changes: Partial<Record<Name, string>>) =>
      setParams(
        (old) => {
          for (const [name, value] of Object.entries<string | undefined>(changes)) {
            if (value) old.set(name, value);
            else old.delete(name);
          }
          return old;
        },
        { replace: true },
      ),
    [setParams],
  );
  return [values, change] as const;
}
