import { useEffect, useState } from "react";
import type { Session } from "../api/types";

/**
 * Of whoever is signed in, or was until the session ended; null before anybody is. For somebody else all begins anew:
 * nothing of one person's pages is shown to another.
 */
export function useLastSession(now: Session | null | undefined): Session | null {
  const [last, setLast] = useState<Session | null>(null);
  const isSomebodyElse = now != null && last !== null && now.user.id !== last.user.id;
  if (now && now !== last && !isSomebodyElse) setLast(now);
  useEffect(() => {
    if (isSomebodyElse) location.reload();
  }, [isSomebodyElse]);
  return last;
}
