import type { ApiKey } from "../api/types";

export interface ReachValues {
  models: string[];
  networks: string[];
}

/** Forms have an empty list where the API has null: not held to anything. */
export function reachOf(key: Pick<ApiKey, "allowed_models" | "allowed_networks">): ReachValues {
  return { models: key.allowed_models ?? [], networks: key.allowed_networks ?? [] };
}

export function reachBody({ models, networks }: ReachValues) {
  return {
    allowed_models: models.length > 0 ? models : null,
    allowed_networks: networks.length > 0 ? networks : null,
  };
}

/** In words, for the list; empty where the key is held to nothing. */
export function reachWords(
  key: Pick<ApiKey, "allowed_models" | "allowed_networks" | "scopes">,
): string {
  const { allowed_models: models, allowed_networks: networks } = key;
  const words = [];
  if (models) words.push(models.length > 0 ? `only ${models.join(", ")}` : "no model");
  if (networks) words.push(`only from ${networks.join(", ")}`);
  return words.join("; ");
}
