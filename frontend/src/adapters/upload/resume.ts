import type { Adapter, Version } from "../../api/types";

export interface DeclaredFile {
  name: string;
  size: number;
  sha256: string;
}

function sameFiles(version: Version, files: DeclaredFile[]): boolean {
  return (
    version.files.length === files.length &&
    files.every((file) =>
      version.files.some(
        ({ name, size, sha256 }) =>
          name === file.name && size === file.size && sha256 === file.sha256,
      ),
    )
  );
}

/** An upload of the very same bytes under this name that was broken off: it is continued instead of started anew. */
export function findUnfinished(
  adapters: Adapter[],
  name: string,
  files: DeclaredFile[],
): Version | null {
  const adapter = adapters.find((candidate) => candidate.name === name);
  const unfinished = adapter?.versions.filter(({ state }) => state === "uploading") ?? [];
  return unfinished.find((version) => sameFiles(version, files)) ?? null;
}
