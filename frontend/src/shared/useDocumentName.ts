import { useDocumentTitle } from "@mantine/hooks";

export function useDocumentName(page: string): void {
  useDocumentTitle(`${page} · Veneer`);
}
