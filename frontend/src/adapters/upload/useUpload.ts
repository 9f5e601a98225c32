import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { type Api, bodyOf } from "../../api/client";
import type { Version } from "../../api/types";
import { useTenant } from "../../session/context";
import { readAdapters } from "../queries";
import { sha256Hex } from "./digest";
import { type DeclaredFile, findUnfinished } from "./resume";
import { sendPart } from "./sendPart";
import { type Sample, speedOf, withSample } from "./speed";
import { transferFiles } from "./transfer";

interface Progress {
  sent: number;
  total: number;
}

export type Upload =
  | { step: "idle" }
  | { step: "hashing" }
  /** speed: bytes per second; null while it is not known. */
  | ({ step: "sending"; versionId: string; resumed: boolean; speed: number | null } & Progress)
  | ({ step: "paused"; versionId: string } & Progress)
  | { step: "finishing"; versionId: string }
  | { step: "done"; name: string; version: Version }
  | { step: "failed"; error: unknown };

export interface UploadRequest {
  name: string;
  baseModel: string;
  files: File[];
}

function declare(files: File[]): Promise<DeclaredFile[]> {
  return Promise.all(
    files.map(async (file) => ({
      name: file.name,
      size: file.size,
      sha256: await sha256Hex(file),
    })),
  );
}

async function startVersion(
  api: Api,
  request: UploadRequest,
  files: DeclaredFile[],
): Promise<{ version: Version; resumed: boolean }> {
  const unfinished = findUnfinished(await readAdapters(api), request.name, files);
  if (unfinished) return { version: unfinished, resumed: true };
  const body = { name: request.name, base_model: request.baseModel, files };
  const { version } = await bodyOf(api.POST("/api/v1/adapters", { body }));
  return { version, resumed: false };
}

/** One upload at a time: digests, start or resume, parts, finish. Leaving the page stops it; it can be resumed. */
export function useUpload() {
  const { api, tenantId } = useTenant();
  const queries = useQueryClient();
  const [upload, setUpload] = useState<Upload>({ step: "idle" });
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const refresh = useCallback(
    () => queries.invalidateQueries({ queryKey: [tenantId, "adapters"] }),
    [queries, tenantId],
  );

  const run = useCallback(
    async (request: UploadRequest, signal: AbortSignal) => {
      const total = request.files.reduce((sum, file) => sum + file.size, 0);
      setUpload({ step: "hashing" });
      const files = await declare(request.files);
      const { version, resumed } = await startVersion(api, request, files);
      const path = { params: { path: { version_id: version.id } } };
      let samples: Sample[] = [];
      await transferFiles({
        versionId: version.id,
        tenantId,
        files: request.files,
        readVersion: () => bodyOf(api.GET("/api/v1/versions/{version_id}", path)),
        send: sendPart,
        onProgress: (sent) => {
          if (signal.aborted) return;
          samples = withSample(samples, { at: performance.now(), sent });
          const speed = speedOf(samples);
          setUpload({ step: "sending", versionId: version.id, sent, total, resumed, speed });
        },
        signal,
      });
      setUpload({ step: "finishing", versionId: version.id });
      const finished = await bodyOf(api.POST("/api/v1/versions/{version_id}/finish", path));
      setUpload({ step: "done", name: request.name, version: finished });
    },
    [api, tenantId],
  );

  const start = useCallback(
    async (request: UploadRequest) => {
      const controller = new AbortController();
      abort.current = controller;
      try {
        await run(request, controller.signal);
      } catch (error) {
        if (!controller.signal.aborted) setUpload({ step: "failed", error });
      } finally {
        await refresh();
      }
    },
    [run, refresh],
  );

  /** What is sent stays; `start` goes on from there. */
  const pause = useCallback(() => {
    abort.current?.abort();
    setUpload((now) =>
      now.step === "sending"
        ? { step: "paused", versionId: now.versionId, sent: now.sent, total: now.total }
        : now,
    );
  }, []);

  const reset = useCallback(() => {
    abort.current?.abort();
    setUpload({ step: "idle" });
  }, []);

  return { upload, start, pause, reset };
}
