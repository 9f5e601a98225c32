/** A list as the server cuts it: `next` is the cursor of the following page. */
export interface Page<T> {
  data: T[];
  next: string | null;
}

/** The largest page the server gives. */
export const PAGE_SIZE = 200;

/** Every row of a list, page after page; for lists that a page needs whole. */
export async function allRows<T>(
  fetchPage: (query: { cursor?: string; limit: number }) => Promise<Page<T>>,
): Promise<T[]> {
  const rows: T[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<T> = await fetchPage({ limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) });
    rows.push(...page.data);
    cursor = page.next;
  } while (cursor);
  return rows;
}

const LONG = 3;

/** Of a list so far: more pages than are read anew whenever something happens. Whoever is so deep reads the past. */
export function isLong(data: unknown): boolean {
  const isList = typeof data === "object" && data !== null && "pages" in data;
  return isList && Array.isArray(data.pages) && data.pages.length > LONG;
}
