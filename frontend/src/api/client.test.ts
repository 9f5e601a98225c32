import { afterEach, expect, it } from "vitest";
import { fakeServer } from "../test/fakeServer";
import { bodyOf, createApi, csrfToken } from "./client";
import { messageOf } from "./errors";
import { allRows } from "./pages";

afterEach(() => {
  // biome-ignore lint/suspicious/noDocumentCookie: jsdom has no cookie store
  document.cookie = "csrftoken=; max-age=0";
});

it("names the tenant on each request and proves writes with the CSRF cookie", async () => {
  // biome-ignore lint/suspicious/noDocumentCookie: jsdom has no cookie store
  document.cookie = "csrftoken=tok";
  const seen = fakeServer({
    "GET /api/v1/keys": { body: { data: [], next: null } },
    "POST /api/v1/playground/key": { status: 201, body: { key: "vnr_x", expires_at: "" } },
  });
  const api = createApi("ten_1");
  await bodyOf(api.GET("/api/v1/keys"));
  await bodyOf(api.POST("/api/v1/playground/key"));
  expect(seen.map(({ headers }) => headers.get("X-Veneer-Tenant"))).toEqual(["ten_1", "ten_1"]);
  expect(seen.map(({ headers }) => headers.get("X-CSRFToken"))).toEqual([null, "tok"]);
});

it("throws the server's own sentence, its code and its field", async () => {
  const error = { message: "scopes: choose one", code: "invalid", param: "scopes" };
  fakeServer({ "GET /api/v1/keys": { status: 400, body: { error } } });
  await expect(bodyOf(createApi(null).GET("/api/v1/keys"))).rejects.toMatchObject({
    status: 400,
    ...error,
  });
});

it("says something useful where the server does not", async () => {
  fakeServer({ "GET /api/v1/keys": { status: 502, body: "<html>" } });
  await expect(bodyOf(createApi(null).GET("/api/v1/keys"))).rejects.toThrow("answered 502");
  expect(messageOf(new TypeError("Failed to fetch"))).toContain("cannot be reached");
});

it("finds the token among other cookies", () => {
  expect(csrfToken("a=1; csrftoken=x%3D; b=2")).toBe("x=");
  expect(csrfToken("xcsrftoken=1")).toBe("");
});

it("reads a list to its end", async () => {
  const asked: (string | undefined)[] = [];
  const rows = await allRows(async ({ cursor }) => {
    asked.push(cursor);
    return cursor === "c2" ? { data: [3], next: null } : { data: [1, 2], next: "c2" };
  });
  expect(rows).toEqual([1, 2, 3]);
  expect(asked).toEqual([undefined, "c2"]);
});
