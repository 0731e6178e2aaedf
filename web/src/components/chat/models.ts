import type { Chat, Model, Tally } from "./chat";

/** A model as the inputs of the API name it. */
export interface ModelInput {
  deployment?: string;
  revision?: number;
  endpoint?: string;
  name?: string;
}

/** Returns how the API is asked for a model; null if the model is no longer available. */
export function inputOf(model: Model): ModelInput | null {
  if (model.deployment) {
    return { deployment: model.deployment.id, ...(model.revision ? { revision: model.revision } : {}) };
  }
  return model.endpoint ? { endpoint: model.endpoint.id, name: model.name } : null;
}

/** Returns a text that identifies a model in a list, whatever revision of it is asked. */
export const keyOf = (model: Model) =>
  model.deployment ? `d:${model.deployment.id}` : `e:${model.endpoint?.id ?? ""}:${model.name}`;

/** Returns the name of a model in links: NAME of a deployment, ENDPOINT/NAME of a model of an endpoint. */
export const linkName = (model: Model) => (model.endpoint ? `${model.endpoint.name}/${model.name}` : model.name);

/** Reports whether the owner of a model that is asked records prompts and answers. */
export const recorded = (asked: readonly { model: Model | null }[], models: readonly Model[]) =>
  asked.some(({ model }) => model && models.some((m) => keyOf(m) === keyOf(model) && m.deployment?.recorded));

/** Returns the text that a page shows for a model. */
export const labelOf = (model: Model) => (model.revision ? `${linkName(model)} (r${model.revision})` : linkName(model));

/** Returns the models that a link names, in its order, and the names that no model has. */
export function fromLink(names: string, models: readonly Model[]): { found: Model[]; missing: string[] } {
  const found: Model[] = [];
  const missing: string[] = [];
  for (const text of names.split(",").map((n) => n.trim())) {
    if (text === "") continue;
    const [, name = text, revision] = /^(.*)@(\d+)$/.exec(text) ?? [];
    const model = models.find((m) => linkName(m) === name || m.deployment?.id === name);
    if (!model) missing.push(text);
    else found.push(revision && model.deployment ? { ...model, revision: Number(revision) } : model);
  }
  return { found, missing };
}

/** Returns the link that opens a draft with models and a prompt. */
export function draftLink(origin: string, models: readonly Model[], prompt: string): string {
  const search = new URLSearchParams();
  const name = (m: Model) => `${linkName(m)}${m.revision ? `@${m.revision}` : ""}`;
  if (models.length > 0) search.set("models", models.map(name).join(","));
  if (prompt !== "") search.set("prompt", prompt);
  const text = search.toString();
  return `${origin}/chat${text ? `?${text}` : ""}`;
}

/** Returns the letter of the column at a position: the name of its model while that is hidden. */
export const letter = (position: number) => String.fromCharCode(65 + (position % 26));

/** Returns the share of votes that a model won, with ties as half of a win; null without votes. */
export function winRate({ wins, losses, ties }: Pick<Tally, "wins" | "losses" | "ties">): number | null {
  const all = wins + losses + ties;
  return all === 0 ? null : (wins + ties / 2) / all;
}

/** Reports whether the names of the models are hidden from the viewer. */
export const hidden = (chat: Pick<Chat, "blind" | "columns">) =>
  chat.blind && chat.columns.some((c) => c.model === null);
