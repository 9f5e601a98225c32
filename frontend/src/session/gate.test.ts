import { expect, it, vi } from "vitest";
import { bodyOf, createApi } from "../api/client";
import { SessionGate } from "./gate";

const signedOut = { error: { message: "Nobody is signed in", code: "not_authenticated" } };
const wrong = { error: { message: "The code is wrong.", code: "wrong_code" } };

function answers(...bodies: [number, unknown][]): Request[] {
  const seen: Request[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    seen.push(request);
    const [status, body] = bodies[seen.length - 1] ?? [500, {}];
    return new Response(JSON.stringify(body), { status });
  });
  return seen;
}

const issue = { name: "ci", scopes: ["inference" as const] };

it("asks again, with all that was said, once somebody is signed in again", async () => {
  const seen = answers([401, signedOut], [401, signedOut], [201, { id: "key_1" }]);
  const ended = vi.fn();
  const gate = new SessionGate(ended);
  const call = bodyOf(createApi("ten_1", gate).POST("/api/v1/keys", { body: issue }));
  await vi.waitFor(() => expect(ended).toHaveBeenCalledTimes(1));
  gate.open();
  await vi.waitFor(() => expect(ended).toHaveBeenCalledTimes(2));
  // biome-ignore lint/suspicious/noDocumentCookie: as the server sets it with the new session
  document.cookie = "csrftoken=fresh";
  gate.open();
  expect(await call).toEqual({ id: "key_1" });
  expect(await seen[2]?.json()).toEqual(issue);
  expect(seen[2]?.headers.get("X-CSRFToken")).toBe("fresh");
  expect(seen[2]?.headers.get("X-Veneer-Tenant")).toBe("ten_1");
});

it("lets other refusals through at once", async () => {
  answers([401, wrong]);
  const ended = vi.fn();
  const call = bodyOf(createApi("ten_1", new SessionGate(ended)).GET("/api/v1/balance"));
  await expect(call).rejects.toThrow("The code is wrong.");
  expect(ended).not.toHaveBeenCalled();
});
