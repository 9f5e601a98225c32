// @vitest-environment node
import { expect, it } from "vitest";
import { anAdapter, aVersion } from "../../test/samples";
import { findUnfinished } from "./resume";

const files = [{ name: "adapter_config.json", size: 3, sha256: "aa" }];
const held = files.map((file) => ({ ...file, received_bytes: 0, ranges: [] }));

it("continues an upload of the very same bytes", () => {
  const version = aVersion({ state: "uploading", files: held });
  const adapters = [anAdapter({ name: "pirate", versions: [version] })];
  expect(findUnfinished(adapters, "pirate", files)).toBe(version);
  expect(findUnfinished(adapters, "other", files)).toBeNull();
});

it("starts anew for other bytes and for closed uploads", () => {
  const other = files.map((file) => ({ ...file, sha256: "bb" }));
  const open = anAdapter({
    name: "pirate",
    versions: [aVersion({ state: "uploading", files: held })],
  });
  const closed = anAdapter({
    name: "pirate",
    versions: [aVersion({ state: "ready", files: held })],
  });
  expect(findUnfinished([open], "pirate", other)).toBeNull();
  expect(findUnfinished([closed], "pirate", files)).toBeNull();
});
