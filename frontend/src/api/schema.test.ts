// @vitest-environment node
import openapiTS, { astToString, COMMENT_HEADER } from "openapi-typescript";
import { expect, it } from "vitest";
import openapi from "../../openapi.json?raw";
import schema from "./schema.ts?raw";

it("is what openapi.json says: else run `npm run schema`", async () => {
  expect(schema).toBe(COMMENT_HEADER + astToString(await openapiTS(openapi)));
});
