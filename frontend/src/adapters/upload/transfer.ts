import { ApiError } from "../../api/errors";
import type { Version, VersionFile } from "../../api/types";
import { coveredBytes, type Part, planParts } from "./plan";
import type { SendPart } from "./sendPart";

const ATTEMPTS = 4;
const FIRST_WAIT_MS = 400;
const PARALLEL = 3;

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
  /** How many parts are on their way at once. */
  parallel?: number;
  wait?: (milliseconds: number) => Promise<void>;
}

/** Worth another try: the connection broke or the server stumbled. A refusal or the user's stop is not. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ApiError) return error.status >= 500;
  return error instanceof TypeError;
}

/** What is sent may be gone on from: also after signing in again. */
export function canGoOn(error: unknown): boolean {
  return isTransient(error) || (error instanceof ApiError && error.status === 401);
}

const sleep = (milliseconds: number) =>
  new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

interface Piece extends Part {
  file: File;
}

/** Everything the server lacks, in order: the small file first, so that its faults show before the weights go up. */
function missingPieces(transfer: Transfer, held: VersionFile[]): Piece[] {
  return transfer.files.flatMap((file) => {
    const ranges = held.find(({ name }) => name === file.name)?.ranges ?? [];
    return planParts(file.size, ranges, transfer.partBytes).map((part) => ({ ...part, file }));
  });
}

/** Several at a time: one connection alone does not fill a long line. The first failure stops them all. */
async function sendMissing(transfer: Transfer, held: VersionFile[]): Promise<void> {
  const pieces = missingPieces(transfer, held);
  const before = held.reduce((sum, file) => sum + coveredBytes(file.ranges), 0);
  const sent = new Map<Piece, number>();
  const tell = () =>
    transfer.onProgress([...sent.values()].reduce((sum, bytes) => sum + bytes, before));
  const stop = new AbortController();
  const signal = AbortSignal.any([transfer.signal, stop.signal]);
  const note = (piece: Piece, bytes: number) => {
    sent.set(piece, Math.min(bytes, piece.end - piece.start));
    tell();
  };
  const send = async (piece: Piece) => {
    await transfer.send({
      versionId: transfer.versionId,
      fileName: piece.file.name,
      offset: piece.start,
      body: piece.file.slice(piece.start, piece.end),
      tenantId: transfer.tenantId,
      signal,
      onProgress: (bytes) => note(piece, bytes),
    });
    note(piece, piece.end - piece.start);
  };
  const work = async () => {
    for (let piece = pieces.shift(); piece; piece = pieces.shift()) {
      signal.throwIfAborted();
      await send(piece);
    }
  };
  tell();
  const workers = Array.from({ length: transfer.parallel ?? PARALLEL }, work);
  try {
    await Promise.all(workers);
  } finally {
    stop.abort();
    await Promise.allSettled(workers);
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
