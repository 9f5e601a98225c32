import type { BaseModel, ModelSize } from "../api/types";
import { useUrlState } from "../shared/useUrlState";
import type { KvType, Question } from "./arithmetic";
import { DEVICES, type Device, MODELS } from "./devices";

const NAMES = ["model", "device", "memory", "kv", "context", "slots", "rank", "reserve"] as const;
export type Field = (typeof NAMES)[number];
export const KV_TYPES: KvType[] = ["fp8", "bf16", "fp32"];

export interface Choice {
  value: string;
  label: string;
  size: ModelSize;
}

export interface Asked {
  models: Choice[];
  model: Choice;
  device: Device;
  /** As in the fields: memory in GB, reserve in percent. */
  fields: Record<Exclude<Field, "model" | "device" | "kv">, number>;
  question: Question;
  change: (values: Partial<Record<Field, string>>) => void;
}

/** Whole numbers at least `least`; anything else in the address is taken for the usual. */
function wholeOf(text: string, usual: number, least: number): number {
  const value = Number(text);
  return text !== "" && Number.isInteger(value) && value >= least ? value : usual;
}

/** Those of this platform first, then some to plan with. */
export function modelChoices(known: BaseModel[]): Choice[] {
  const ours = known.flatMap(({ name, size }) =>
    size ? [{ value: name, label: name, size }] : [],
  );
  const names = new Set(ours.map(({ value }) => value));
  const presets = MODELS.filter(({ id }) => !names.has(id));
  return [...ours, ...presets.map(({ id, label, size }) => ({ value: id, label, size }))];
}

/** What is asked lives in the page's address. */
export function useQuestion(known: BaseModel[], device: string): Asked {
  const [values, change] = useUrlState(NAMES);
  const models = modelChoices(known);
  const model = models.find(({ value }) => value === values.model) ?? (models[0] as Choice);
  const chosen =
    DEVICES.find(({ id }) => id === (values.device || device)) ?? (DEVICES[0] as Device);
  const fields = {
    memory: wholeOf(values.memory, Math.round(chosen.memory / 1e9), 1),
    context: wholeOf(values.context, 4096, 1),
    slots: wholeOf(values.slots, 64, 0),
    rank: wholeOf(values.rank, 16, 1),
    reserve: Math.min(wholeOf(values.reserve, 10, 0), 99),
  };
  const question: Question = {
    memory: fields.memory * 1e9,
    kv: KV_TYPES.find((type) => type === values.kv) ?? "fp8",
    context: fields.context,
    slots: fields.slots,
    rank: fields.rank,
    reserve: fields.reserve / 100,
    pageSize: 16,
    flops: chosen.flops,
    bandwidth: chosen.bandwidth,
  };
  return { models, model, device: chosen, fields, question, change };
}
