import { useEffect, useState } from "react";
import type { Fleet } from "../api/types";
import { type Look, lookAt } from "./rates";

const MOST = 180;

/** The looks at one replica since this page was opened, the newest last. */
export function useHistory(fleet: Fleet | undefined, name: string): Look[] {
  const [looks, setLooks] = useState<Look[]>([]);
  useEffect(() => {
    const look = fleet && lookAt(fleet, name);
    if (look) setLooks((before) => append(before, look));
  }, [fleet, name]);
  return looks;
}

export function append(before: Look[], look: Look): Look[] {
  const newest = before.at(-1);
  if (newest && newest.at >= look.at) return before;
  return [...before, look].slice(-MOST);
}
