import { sessionHeaders } from "../../api/client";
import { errorFromText } from "../../api/errors";

interface PartRequest {
  versionId: string;
  fileName: string;
  offset: number;
  body: Blob;
  tenantId: string;
  signal: AbortSignal;
  /** Bytes of this part that have left the browser. */
  onProgress: (sent: number) => void;
}

export type SendPart = (part: PartRequest) => Promise<void>;

function partUrl({ versionId, fileName, offset }: PartRequest): string {
  return `/api/v1/versions/${versionId}/files/${encodeURIComponent(fileName)}?offset=${offset}`;
}

/** Sends one part. XMLHttpRequest, because fetch does not tell how much of a body has been sent. */
export const sendPart: SendPart = (part) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    request.open("PUT", partUrl(part));
    request.setRequestHeader("Content-Type", "application/octet-stream");
    for (const [name, value] of Object.entries(sessionHeaders("PUT", part.tenantId))) {
      request.setRequestHeader(name, value);
    }
    request.upload.onprogress = (event) => part.onProgress(event.loaded);
    request.onload = () =>
      request.status < 300
        ? resolve()
        : reject(errorFromText(request.status, request.responseText));
    request.onerror = () => reject(new TypeError("connection lost"));
    request.onabort = () => reject(new DOMException("The upload was stopped.", "AbortError"));
    request.onloadend = () => part.signal.removeEventListener("abort", abort);
    part.signal.addEventListener("abort", abort);
    request.send(part.body);
  });
