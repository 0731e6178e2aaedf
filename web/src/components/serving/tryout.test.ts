import { afterEach, expect, test, vi } from "vitest";
import { type Answer, add, noAnswer, requestOf, send, snippets, split, tokenRate } from "./tryout";

afterEach(() => vi.unstubAllGlobals());

/** Answers a request with these parts. */
function answerWith(parts: string[], head: ResponseInit & { headers?: Record<string, string> } = {}) {
  const fetched = vi.fn(async () => {
    const body = new ReadableStream<Uint8Array>({
      start(control) {
        for (const p of parts) control.enqueue(new TextEncoder().encode(p));
        control.close();
      },
    });
    return new Response(body, { headers: { "Content-Type": "text/event-stream" }, ...head });
  });
  vi.stubGlobal("fetch", fetched);
  return fetched;
}

async function ask(kind: "chat" | "completion" | "embedding" = "chat") {
  let last: Answer = noAnswer;
  await send({
    address: "https://models.test/v1/",
    key: "secret",
    kind,
    model: "m",
    text: "hi",
    signal: new AbortController().signal,
    onChange: (a) => {
      last = a;
    },
  });
  return last;
}

test("a stream is read across its parts", async () => {
  const fetched = answerWith([
    ': replica 1 starts\n\ndata: {"choices":[{"del',
    'ta":{"content":"<b>A"}}]}\r\n\r\ndata: {"choices":[{"delta":{"content":" b"}}]}\n\n',
    'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\ndata: [DONE]\n\n',
  ]);
  const answer = await ask();
  expect(answer).toMatchObject({ text: "<b>A b", progress: "", prompt: 3, completion: 2 });
  expect(answer.first).not.toBeNull();
  const [url, init] = fetched.mock.calls[0] as unknown as [string, RequestInit];
  expect(url).toBe("https://models.test/v1/chat/completions");
  expect(init.headers).toMatchObject({ Authorization: "Bearer secret" });
  expect(init.credentials).toBe("omit");
  expect(init.redirect).toBe("error");
});

test("an embedding is shown by its size and beginning", async () => {
  answerWith(['{"data":[{"embedding":[0.1,0.2]}],"usage":{"prompt_tokens":1}}'], {
    headers: { "Content-Type": "application/json" },
  });
  expect((await ask("embedding")).text).toBe("2: [0.1000, 0.2000]");
});

test("a refusal has its reason and when to try again", async () => {
  answerWith(['{"error":{"message":"the budget is used"}}'], { status: 429, headers: { "Retry-After": "30" } });
  await expect(ask()).rejects.toThrow("429: the budget is used (Retry-After 30 s)");
  answerWith(["<html>"], { status: 502, statusText: "Bad Gateway" });
  await expect(ask()).rejects.toThrow("502: Bad Gateway");
  answerWith(['data: {"error":{"message":"the engine ended"}}\n\n']);
  await expect(ask()).rejects.toThrow("the engine ended");
});

test("the first token is the one with text", () => {
  const role = add(noAnswer, { choices: [{ delta: { content: null } }] }, 5);
  expect(role.first).toBeNull();
  const text = add(role, { choices: [{ delta: { content: "x" } }] }, 9);
  expect(add(text, { choices: [{ delta: { content: "y" } }] }, 20)).toMatchObject({ first: 9, total: 20, text: "xy" });
});

test("tokens in a second do not count the first", () => {
  expect(tokenRate({ ...noAnswer, first: 100, total: 1100, completion: 11 })).toBe(10);
  expect(tokenRate({ ...noAnswer, first: 100, total: 1100, completion: 1 })).toBeNull();
  expect(tokenRate(noAnswer)).toBeNull();
});

test("an incomplete event waits for its rest", () => {
  expect(split("data: a\ndata: b\n\n:c\n\ndata: d")).toEqual({ events: ["a\nb"], comments: ["c"], rest: "data: d" });
});

test("requests and programs name the model", () => {
  expect(requestOf("completion", "m", "p").body).toMatchObject({ model: "m", prompt: "p", stream: true });
  expect(requestOf("embedding", "m", "p").body).toEqual({ model: "m", input: "p" });
  const closed = snippets("https://x/v1", "llama", false);
  expect(closed.map((s) => s.name)).toEqual(["curl", "Python", "JavaScript", "berth"]);
  for (const s of closed) expect(s.code, s.name).toContain("llama");
  expect(closed[0]?.code).toContain("Bearer $BERTH_MODEL_KEY");
  expect(snippets("https://x/v1", "llama", true)[0]?.code).not.toContain("Bearer");
});
