/** SHA-256 as lower-case hex. Browsers offer WebCrypto only to pages on https or localhost. */
export async function sha256Hex(blob: Blob): Promise<string> {
  if (!globalThis.crypto?.subtle) {
    throw new Error(
      "Uploads need a page opened over https or on localhost: ask the operator for such an address.",
    );
  }
  const digest = await crypto.subtle.digest("SHA-256", await blob.arrayBuffer());
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
