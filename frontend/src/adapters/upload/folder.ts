const NEEDED = ["adapter_config.json", "adapter_model.safetensors"];
const SHARDS = /^adapter_model(-\d{5}-of-\d{5}\.safetensors|\.safetensors\.index\.json)$/;
/** Sent where there is nothing else, so that the server says why it refuses them and what to do instead. */
const WEIGHTS_IN_OTHER_FORMATS = /^adapter_model.*\.(bin|pt|pth|pkl)$/;

export interface AdapterFolder {
  /** A valid adapter name made from the folder's. */
  suggestedName: string;
  /** The small one first, so that its faults show before the weights go up. */
  files: File[];
  ignored: string[];
}

type WithPath = File & { path?: string };

function pathOf(file: WithPath): string {
  return (file.webkitRelativePath || file.path || file.name).replace(/^[./]+/, "");
}

export function adapterName(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 63);
}

function depthOf(path: string): number {
  return path.split("/").length;
}

function adapterFiles(beside: File[]): File[] {
  const needed = beside.filter(({ name }) => NEEDED.includes(name));
  if (needed.length === NEEDED.length) return needed;
  const shards = beside.filter(({ name }) => SHARDS.test(name));
  if (shards.length > 0) return [...needed, ...shards];
  return [...needed, ...beside.filter(({ name }) => WEIGHTS_IN_OTHER_FORMATS.test(name))];
}

/**
 * Picks what belongs to the adapter out of what was dropped: the files beside the topmost adapter_config.json.
 * Training leaves checkpoints in subfolders, with files of the same names; those are left out.
 */
export function readFolder(dropped: File[]): AdapterFolder | { problem: string } {
  const entries = dropped.map((file) => ({ file, path: pathOf(file) }));
  const config = entries
    .filter(({ file }) => file.name === "adapter_config.json")
    .sort((a, b) => depthOf(a.path) - depthOf(b.path))[0];
  if (!config) {
    return {
      problem:
        "There is no adapter_config.json here. Drop the folder that PEFT's save_pretrained wrote.",
    };
  }
  const home = config.path.slice(0, -config.file.name.length);
  const beside = entries.filter(({ file, path }) => path === home + file.name);
  const files = adapterFiles(beside.map(({ file }) => file)).sort((a, b) => a.size - b.size);
  if (files.length < 2) {
    return {
      problem:
        "There is no adapter_model.safetensors beside adapter_config.json. Save the adapter with safe_serialization.",
    };
  }
  return {
    suggestedName: adapterName(home.split("/").filter(Boolean).at(-1) ?? ""),
    files,
    ignored: entries.filter(({ file }) => !files.includes(file)).map(({ path }) => path),
  };
}
