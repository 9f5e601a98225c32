import createClient, { type Client, type Middleware } from "openapi-fetch";
import type { SessionGate } from "../session/gate";
import { errorFromResponse } from "./errors";
import type { paths } from "./schema";

export type Api = Client<paths>;

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

export function csrfToken(cookies = document.cookie): string {
  const found = cookies.split("; ").find((cookie) => cookie.startsWith("csrftoken="));
  return found ? decodeURIComponent(found.slice("csrftoken=".length)) : "";
}

/** What every request of the console carries: whose tenant it is about, and the CSRF proof of a write. */
export function sessionHeaders(method: string, tenantId: string | null): Record<string, string> {
  return {
    ...(tenantId ? { "X-Veneer-Tenant": tenantId } : {}),
    ...(READS.has(method) ? {} : { "X-CSRFToken": csrfToken() }),
  };
}

function sessionMiddleware(tenantId: string | null): Middleware {
  return {
    onRequest({ request }) {
      for (const [name, value] of Object.entries(sessionHeaders(request.method, tenantId))) {
        request.headers.set(name, value);
      }
      return request;
    },
    async onResponse({ response }) {
      if (!response.ok) throw await errorFromResponse(response);
    },
  };
}

/** Asked again, with a new proof of a write, once whoever was signed in is so again. */
async function fetchInSession(request: Request, gate: SessionGate): Promise<Response> {
  const again = request.clone();
  const response = await fetch(request);
  if (!(await saysSignedOut(response))) return response;
  await gate.wait();
  if (again.headers.has("X-CSRFToken")) again.headers.set("X-CSRFToken", csrfToken());
  return fetchInSession(again, gate);
}

/** Other refusals with this status are of a password or a code. */
async function saysSignedOut(response: Response): Promise<boolean> {
  if (response.status !== 401) return false;
  return (await errorFromResponse(response.clone())).code === "not_authenticated";
}

/**
 * One client per tenant: who is asked about is part of the client, not of a global. Failures throw `ApiError`.
 * With a gate, a session that has ended is no failure: the request waits for the next one.
 */
export function createApi(tenantId: string | null, gate?: SessionGate): Api {
  const client = createClient<paths>({
    baseUrl: location.origin,
    fetch: (request) => (gate ? fetchInSession(request, gate) : fetch(request)),
  });
  client.use(sessionMiddleware(tenantId));
  return client;
}

/** The body of a success; the middleware has thrown for everything else. */
export async function bodyOf<T>(call: Promise<{ data?: T }>): Promise<T> {
  const { data } = await call;
  if (data === undefined) throw new Error("The server's answer has no body.");
  return data;
}
