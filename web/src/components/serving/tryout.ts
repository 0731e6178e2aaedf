import { t } from "../../i18n";

/** The kinds of requests that can be tried. */
export type Kind = "chat" | "completion" | "embedding";

const paths: Record<Kind, string> = { chat: "chat/completions", completion: "completions", embedding: "embeddings" };

/** Returns the path below the address and the body of a request. */
export function requestOf(kind: Kind, model: string, text: string, stream = true) {
  const streamed = stream ? { stream: true, stream_options: { include_usage: true } } : {};
  const body = {
    chat: { model, messages: [{ role: "user", content: text }], ...streamed },
    completion: { model, prompt: text, ...streamed },
    embedding: { model, input: text },
  }[kind];
  return { path: paths[kind], body };
}

export interface Answer {
  text: string;
  /** What the router says while no replica is ready. */
  progress: string;
  /** Milliseconds until the first token. */
  first: number | null;
  total: number;
  prompt: number | null;
  completion: number | null;
}

export const noAnswer: Answer = { text: "", progress: "", first: null, total: 0, prompt: null, completion: null };

/** Tokens of an answer in a second, without the first; null if it cannot be known. */
export function tokenRate({ completion, first, total }: Answer): number | null {
  if (completion === null || first === null || completion < 2 || total <= first) return null;
  return (1000 * (completion - 1)) / (total - first);
}

/** The most characters of an answer that are shown. */
const maxText = 200_000;

interface Chunk {
  choices?: { delta?: { content?: string | null }; text?: string; message?: { content?: string } }[];
  usage?: { prompt_tokens?: number; completion_tokens?: number } | null;
  error?: { message?: string };
  data?: { embedding?: number[] }[];
}

/** Adds one event of a stream, or a whole answer, to an answer. It throws the error that the event carries. */
export function add(answer: Answer, event: unknown, elapsed: number): Answer {
  const chunk = event as Chunk;
  if (chunk.error) throw new Error(chunk.error.message ?? t("the model broke off"));
  const vector = chunk.data?.[0]?.embedding;
  const more = vector
    ? `${vector.length}: [${vector
        .slice(0, 8)
        .map((n) => n.toFixed(4))
        .join(", ")}${vector.length > 8 ? ", …" : ""}]`
    : (chunk.choices ?? []).map((c) => c.delta?.content ?? c.message?.content ?? c.text ?? "").join("");
  return {
    text: (answer.text + more).slice(0, maxText),
    progress: more ? "" : answer.progress,
    first: answer.first ?? (more ? elapsed : null),
    total: elapsed,
    prompt: chunk.usage?.prompt_tokens ?? answer.prompt,
    completion: chunk.usage?.completion_tokens ?? answer.completion,
  };
}

/**
 * Splits a part of a stream of events into complete events, comments and the rest. An event is its data; the end of
 * the stream, [DONE], is left out.
 */
export function split(buffer: string): { events: string[]; comments: string[]; rest: string } {
  const events: string[] = [];
  const comments: string[] = [];
  const blocks = buffer.replaceAll("\r\n", "\n").split("\n\n");
  const rest = blocks.pop() ?? "";
  for (const block of blocks) {
    const data: string[] = [];
    for (const line of block.split("\n")) {
      if (line.startsWith(":")) comments.push(line.slice(1).trim());
      else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    }
    if (data.length > 0 && data.join("\n") !== "[DONE]") events.push(data.join("\n"));
  }
  return { events, comments, rest };
}

interface Send {
  address: string;
  key: string;
  kind: Kind;
  model: string;
  text: string;
  signal: AbortSignal;
  onChange: (answer: Answer) => void;
}

/** Sends a request and reports the answer as it arrives. */
export async function send({ address, key, kind, model, text, signal, onChange }: Send): Promise<void> {
  const { path, body } = requestOf(kind, model, text);
  const begun = performance.now();
  const response = await fetch(`${address.replace(/\/$/, "")}/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) },
    body: JSON.stringify(body),
    credentials: "omit",
    redirect: "error",
    signal,
  });
  const elapsed = () => performance.now() - begun;
  if (!response.ok) throw new Error(await reasonOf(response));
  let answer = noAnswer;
  if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
    onChange(add(answer, await response.json(), elapsed()));
    return;
  }
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const found = split(buffer + value);
    buffer = found.rest;
    for (const progress of found.comments) answer = { ...answer, progress, total: elapsed() };
    for (const event of found.events) answer = add(answer, JSON.parse(event), elapsed());
    onChange(answer);
  }
}

/** Returns the reason of a refused request, with its status. */
export async function reasonOf(response: Response): Promise<string> {
  const said = (await response.json().catch(() => null)) as { error?: { message?: string } } | null;
  const wait = response.headers.get("Retry-After");
  const reason = said?.error?.message ?? response.statusText;
  return `${response.status}: ${reason}${wait ? ` (Retry-After ${wait} s)` : ""}`;
}

/** Programs that send a request to a deployment. The key is in a variable of the environment. */
export function snippets(address: string, model: string, open: boolean): { name: string; code: string }[] {
  const key = open ? '"none"' : 'os.environ["BERTH_MODEL_KEY"]';
  return [
    {
      name: "curl",
      code: `curl ${address}/chat/completions \\\n${open ? "" : '  -H "Authorization: Bearer $BERTH_MODEL_KEY" \\\n'}  -H "Content-Type: application/json" \\\n  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`,
    },
    {
      name: "Python",
      code: `import os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url="${address}", api_key=${key})\nanswer = client.chat.completions.create(\n    model="${model}",\n    messages=[{"role": "user", "content": "Hello"}],\n)\nprint(answer.choices[0].message.content)`,
    },
    {
      name: "JavaScript",
      code: `import OpenAI from "openai";\n\nconst client = new OpenAI({\n  baseURL: "${address}",\n  apiKey: ${open ? '"none"' : "process.env.BERTH_MODEL_KEY"},\n});\nconst answer = await client.chat.completions.create({\n  model: "${model}",\n  messages: [{ role: "user", content: "Hello" }],\n});\nconsole.log(answer.choices[0].message.content);`,
    },
    { name: "berth", code: `berth chat ${model} "Hello"` },
  ];
}
