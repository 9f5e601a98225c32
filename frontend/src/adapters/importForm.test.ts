// @vitest-environment node
import { expect, it } from "vitest";
import { sourceOf, suggestedName } from "./ImportForm";

it("sends one address as it is and several as a list", () => {
  expect(sourceOf(" https://a.example/x \n")).toBe("https://a.example/x");
  expect(
    sourceOf("https://a.example/x/adapter_config.json\nhttps://a.example/x/w.safetensors"),
  ).toEqual(["https://a.example/x/adapter_config.json", "https://a.example/x/w.safetensors"]);
});

it("suggests a name from where it is", () => {
  expect(suggestedName("acme/Support_Bot@v2")).toBe("support-bot");
  expect(suggestedName("https://a.example/models/support-bot/")).toBe("support-bot");
  expect(suggestedName("https://a.example/bot/adapter_config.json?sig=x")).toBe("bot");
  expect(suggestedName("s3://bucket/adapters/bot")).toBe("bot");
  expect(suggestedName("")).toBe("");
});
