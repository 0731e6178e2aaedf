import type { Parameters } from "./chat";

/** The parameters of a column as the texts of a form. An empty text is the default of the engine. */
export interface ParametersDraft {
  system: string;
  temperature: string;
  topP: string;
  maxTokens: string;
  presencePenalty: string;
  frequencyPenalty: string;
  seed: string;
  /** One text that ends an answer on each line. */
  stop: string;
  schema: string;
}

export type Field = keyof ParametersDraft;

interface NumberRule {
  /** Name for the page. */
  label: string;
  min: number;
  max: number;
  whole?: boolean;
  /** The minimum itself is not allowed. */
  above?: boolean;
}

export const numbers = {
  temperature: { label: "Temperature", min: 0, max: 2 },
  topP: { label: "Top-p", min: 0, max: 1, above: true },
  maxTokens: { label: "Maximum of tokens", min: 1, max: 1_000_000, whole: true },
  presencePenalty: { label: "Presence penalty", min: -2, max: 2 },
  frequencyPenalty: { label: "Frequency penalty", min: -2, max: 2 },
  seed: { label: "Seed", min: -2_147_483_648, max: 2_147_483_647, whole: true },
} as const satisfies Partial<Record<Field, NumberRule>>;

export type NumberField = keyof typeof numbers;
export const numberFields = Object.keys(numbers) as NumberField[];

const mostStops = 4;
const longestStop = 100;
/** Bytes of a system prompt, and of a schema. */
const mostText = 32 << 10;

export const noParameters: Parameters = {
  system: "",
  temperature: null,
  topP: null,
  maxTokens: null,
  presencePenalty: null,
  frequencyPenalty: null,
  seed: null,
  stop: [],
  schema: "",
};

const text = (n: number | null) => (n === null ? "" : String(n));

export const draftOf = (p: Parameters): ParametersDraft => ({
  system: p.system,
  temperature: text(p.temperature),
  topP: text(p.topP),
  maxTokens: text(p.maxTokens),
  presencePenalty: text(p.presencePenalty),
  frequencyPenalty: text(p.frequencyPenalty),
  seed: text(p.seed),
  stop: p.stop.map((s) => s.replaceAll("\n", "\\n")).join("\n"),
  schema: p.schema,
});

const bytesOf = (s: string) => new TextEncoder().encode(s).length;

const stops = (draft: ParametersDraft) =>
  draft.stop
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.replaceAll("\\n", "\n"));

/** A problem of a field: a sentence for the page, with its values. */
export interface Problem {
  text: string;
  values?: Record<string, string | number>;
}

function numberProblem(typed: string, rule: NumberRule): Problem | null {
  const value = Number(typed);
  if (!Number.isFinite(value)) return { text: "Enter a number." };
  if (rule.whole && !Number.isInteger(value)) return { text: "Enter a whole number." };
  if (value < rule.min || value > rule.max || (rule.above && value === rule.min)) {
    return rule.above
      ? { text: "Enter a number above {{min}}, up to {{max}}.", values: { min: rule.min, max: rule.max } }
      : { text: "Enter a number from {{min}} to {{max}}.", values: { min: rule.min, max: rule.max } };
  }
  return null;
}

function schemaProblem(schema: string): Problem | null {
  if (schema.trim() === "") return null;
  if (bytesOf(schema) > mostText) return { text: "Use at most 32 KiB." };
  try {
    const parsed: unknown = JSON.parse(schema);
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
      return { text: "A JSON schema is an object." };
    }
  } catch (error) {
    return { text: "This is not JSON: {{why}}", values: { why: error instanceof Error ? error.message : "" } };
  }
  return null;
}

/** Returns the problems of a form by field. */
export function problemsOf(draft: ParametersDraft): Partial<Record<Field, Problem>> {
  const found: Partial<Record<Field, Problem>> = {};
  for (const field of numberFields) {
    const typed = draft[field].trim();
    const problem = typed === "" ? null : numberProblem(typed, numbers[field]);
    if (problem) found[field] = problem;
  }
  if (bytesOf(draft.system) > mostText) found.system = { text: "Use at most 32 KiB." };
  const all = stops(draft);
  if (all.length > mostStops) found.stop = { text: "Enter at most 4 lines." };
  else if (all.some((s) => [...s].length > longestStop)) found.stop = { text: "Use at most 100 characters in a line." };
  const schema = schemaProblem(draft.schema);
  if (schema) found.schema = schema;
  return found;
}

/** Returns the parameters of a form without problems. */
export function parametersOf(draft: ParametersDraft): Parameters {
  const number = (field: NumberField) => (draft[field].trim() === "" ? null : Number(draft[field]));
  return {
    system: draft.system,
    temperature: number("temperature"),
    topP: number("topP"),
    maxTokens: number("maxTokens"),
    presencePenalty: number("presencePenalty"),
    frequencyPenalty: number("frequencyPenalty"),
    seed: number("seed"),
    stop: stops(draft),
    schema: draft.schema.trim() === "" ? "" : draft.schema,
  };
}

/** Returns the input of the API: what is not set is left out, so that the engine uses its default. */
export function parametersInput(p: Parameters) {
  const { system, stop, schema, ...rest } = p;
  const set = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null));
  return {
    ...(set as Partial<Record<NumberField, number>>),
    ...(system ? { system } : {}),
    ...(stop.length > 0 ? { stop } : {}),
    ...(schema ? { schema } : {}),
  };
}

/** Returns how many parameters are set. */
export const countSet = (p: Parameters) => Object.keys(parametersInput(p)).length;
