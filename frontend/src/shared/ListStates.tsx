import type { Icon } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { EmptyState } from "./EmptyState";
import { ErrorState } from "./ErrorState";
import { LoadingCards } from "./LoadingCards";

interface Props {
  query: { isPending: boolean; isError: boolean; error: unknown; refetch: () => unknown };
  isEmpty?: boolean;
  /** "The alerts". */
  what: string;
  /** What to say of an empty list; without it there is nothing to say. */
  nothing?: { icon: Icon; title: string; text: string };
  children: ReactNode;
}

/** What a list shows while it loads, when it failed, and when nothing is in it. */
export function ListStates({ query, isEmpty = false, what, nothing, children }: Props) {
  if (query.isPending) return <LoadingCards height={48} />;
  if (query.isError) {
    return (
      <ErrorState
        error={query.error}
        what={`${what} could not be read`}
        onRetry={() => query.refetch()}
      />
    );
  }
  if (isEmpty && nothing) {
    return (
      <EmptyState icon={nothing.icon} title={nothing.title}>
        {nothing.text}
      </EmptyState>
    );
  }
  return children;
}
