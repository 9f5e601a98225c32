import { ApiError } from "../../api/errors";
import type { Version, VersionFile } from "../../api/types";
import { coveredBytes, planParts } from "./plan";
import type { SendPart } from "./sendPart";

const ATTEMPTS = 4;
const FIRST_WAIT_MS = 400;

export interface Transfer {
  versionId: string;
  tenantId: string;
  files: File[];
  /** Asks the server what it holds: what a resumed upload starts from. */
  readVersion: () => Promise<Version>;
  send: SendPart;
  onProgress: (sent: number) => void;
  signal: AbortSignal;
  partBytes?: number;
  wait?: (milliseconds: number) => Promise<void>;
}

/** Worth another try: the connection broke or the server stumbled. A refusal or the user's stop is not. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ApiError) return error.status >= 500;
  return error instanceof TypeError;
}

const sleep = (milliseconds: number) =>
  new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

async function sendMissing(transfer: Transfer, held: VersionFile[]): Promise<void> {
  let done = held.reduce((sum, file) => sum + coveredBytes(file.ranges), 0);
  transfer.onProgress(done);
  for (const file of transfer.files) {
    const ranges = held.find(({ name }) => name === file.name)?.ranges ?? [];
    for (const { start, end } of planParts(file.size, ranges, transfer.partBytes)) {
      transfer.signal.throwIfAborted();
      const before = done;
      await transfer.send({
        versionId: transfer.versionId,
        fileName: file.name,
        offset: start,
        body: file.slice(start, end),
        tenantId: transfer.tenantId,
        signal: transfer.signal,
        onProgress: (sent) => transfer.onProgress(before + Math.min(sent, end - start)),
      });
      done += end - start;
      transfer.onProgress(done);
    }
  }
}

/** Sends every byte the server lacks; after a broken connection it asks again what is held and goes on from there. */
export async function transferFiles(transfer: Transfer): Promise<void> {
  const wait = transfer.wait ?? sleep;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const { files } = await transfer.readVersion();
      return await sendMissing(transfer, files);
    } catch (error) {
      if (!isTransient(error) || attempt === ATTEMPTS) throw error;
      await wait(FIRST_WAIT_MS * 2 ** attempt);
    }
  }
}
