// @vitest-environment node
import { describe, expect, it } from "vitest";
import { adapterName, readFolder } from "./folder";

function at(path: string): File {
  const file = new File(["x"], path.split("/").at(-1) ?? "");
  Object.defineProperty(file, "webkitRelativePath", { value: path });
  return file;
}

describe("readFolder", () => {
  it("takes the two files, names the adapter after the folder, leaves the rest", () => {
    const read = readFolder([
      at("My Pirate_v2/README.md"),
      at("My Pirate_v2/adapter_config.json"),
      at("My Pirate_v2/adapter_model.safetensors"),
      at("My Pirate_v2/checkpoint-10/adapter_config.json"),
      at("My Pirate_v2/checkpoint-10/adapter_model.safetensors"),
      at("My Pirate_v2/adapter_model.bin"),
    ]);
    if ("problem" in read) throw new Error(read.problem);
    expect(read.suggestedName).toBe("my-pirate-v2");
    expect(read.files.map((file) => file.webkitRelativePath)).toEqual([
      "My Pirate_v2/adapter_config.json",
      "My Pirate_v2/adapter_model.safetensors",
    ]);
    expect(read.ignored).toHaveLength(4);
  });

  it("takes shards with their index", () => {
    const shards = ["00001-of-00002", "00002-of-00002"].map(
      (part) => `adapter_model-${part}.safetensors`,
    );
    const index = "adapter_model.safetensors.index.json";
    const names = ["adapter_config.json", index, ...shards];
    const read = readFolder([...names, "tokenizer.json"].map((name) => at(`a/${name}`)));
    expect("files" in read && read.files.map(({ name }) => name)).toEqual(names);
    expect("files" in read && read.ignored).toEqual(["a/tokenizer.json"]);
  });

  it("passes a pickle on where there is nothing else, for the server to refuse it with its remedy", () => {
    const read = readFolder([at("a/adapter_config.json"), at("a/adapter_model.bin")]);
    expect("files" in read && read.files.map(({ name }) => name)).toEqual([
      "adapter_config.json",
      "adapter_model.bin",
    ]);
  });

  it.each([
    ["adapter_config.json", [at("a/adapter_model.safetensors")]],
    ["adapter_model.safetensors", [at("a/adapter_config.json"), at("b/adapter_model.safetensors")]],
  ])("says that %s is missing", (missing, files) => {
    const read = readFolder(files);
    expect("problem" in read && read.problem).toContain(`no ${missing}`);
  });
});

it("makes valid names", () => {
  expect(adapterName("--Support Bot (v3)!")).toBe("support-bot-v3");
  expect(adapterName("ä")).toBe("");
});
