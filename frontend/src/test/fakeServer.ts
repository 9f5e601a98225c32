import { vi } from "vitest";

type Answer = { status?: number; body?: unknown };
type Route = (url: URL, request: Request) => Answer;

/** Stands in for the server: answers by "METHOD /path"; anything else is a 404 in the server's shape. */
export function fakeServer(routes: Record<string, Answer | Route>): Request[] {
  const seen: Request[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    seen.push(request);
    const url = new URL(request.url);
    const route = routes[`${request.method} ${url.pathname}`];
    const missing = { status: 404, body: { error: { message: `no ${url.pathname}` } } };
    const answer = (typeof route === "function" ? route(url, request) : route) ?? missing;
    const status = answer.status ?? 200;
    return new Response(status === 204 ? null : JSON.stringify(answer.body), { status });
  });
  return seen;
}
