import type * as t from "./types";

type Json<T> = { content: { "application/json": T } };
type Get<Ok, Query = undefined, Path = undefined> = {
  parameters: { query?: Query; header?: never; path?: Path; cookie?: never };
  requestBody?: never;
  responses: { 200: Json<Ok> };
};
type Send<Body, Ok, Path = undefined> = {
  parameters: { query?: never; header?: never; path?: Path; cookie?: never };
  requestBody: Json<Body>;
  responses: { 200: Json<Ok> };
};
type Bare<Ok, Path = undefined> = {
  parameters: { query?: never; header?: never; path?: Path; cookie?: never };
  requestBody?: never;
  responses: { 200: Json<Ok> };
};
type List<T> = { data: T[]; next: string | null };

export interface paths {
  "/api/v1/session": {
    get: Get<t.Session>;
    post: Send<{ email: string; password: string }, t.Session>;
    delete: Bare<undefined>;
  };
  "/api/v1/keys": {
    get: Get<List<t.ApiKey>>;
    post: Send<{ name: string; scopes: string[]; expires_at?: string | null }, t.IssuedKey>;
  };
  "/api/v1/keys/{id}/revoke": { post: Bare<t.ApiKey, { id: string }> };
  "/api/v1/playground/key": { post: Bare<{ key: string; expires_at: string }> };
  "/api/v1/adapters": {
    get: Get<List<t.Adapter>>;
    post: Send<
      {
        name: string;
        base_model: string;
        files: { name: string; size: number; sha256: string }[];
      },
      { adapter: t.Adapter; version: t.Version }
    >;
  };
  "/api/v1/adapters/{id}": { delete: Bare<undefined, { id: string }> };
  "/api/v1/adapters/{id}/alias": {
    put: Send<{ splits: t.Split[] }, t.Adapter, { id: string }>;
  };
  "/api/v1/versions/{id}": { get: Get<t.Version, undefined, { id: string }> };
  "/api/v1/versions/{id}/finish": { post: Bare<t.Version, { id: string }> };
  "/api/v1/usage": {
    get: Get<t.Usage, { from: string; to: string; group_by: string; tz: string }>;
  };
  "/api/v1/usage/timeseries": {
    get: Get<
      { step: string; data: t.UsagePoint[] },
      { from: string; to: string; step: string; split: string }
    >;
  };
  "/api/v1/balance": { get: Get<t.Balance> };
}
