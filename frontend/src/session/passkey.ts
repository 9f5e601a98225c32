/** What the browser does with passkeys; the server's JSON in, the browser's own JSON out. */

type Json = Record<string, unknown>;

/** Passkeys belong to a named host over TLS (or to localhost): an address of numbers has none. */
export function canUsePasskeys(): boolean {
  return (
    window.isSecureContext &&
    typeof window.PublicKeyCredential?.parseCreationOptionsFromJSON === "function" &&
    !/^[\d.]+$|^\[/.test(location.hostname)
  );
}

export async function createPasskey(options: Json): Promise<Json> {
  const json = options as unknown as PublicKeyCredentialCreationOptionsJSON;
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(json);
  return answerOf(await navigator.credentials.create({ publicKey }));
}

export async function askPasskey(options: Json): Promise<Json> {
  const json = options as unknown as PublicKeyCredentialRequestOptionsJSON;
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(json);
  return answerOf(await navigator.credentials.get({ publicKey }));
}

function answerOf(credential: Credential | null): Json {
  if (!(credential instanceof PublicKeyCredential)) throw new Error("The browser gave no passkey.");
  return credential.toJSON() as unknown as Json;
}
