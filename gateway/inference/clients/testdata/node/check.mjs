// Asks the router with OpenAI's client from npm and prints what it got as JSON.
import OpenAI from "openai";

const model = process.env.MODEL;
const messages = [{ role: "user", content: "one two three" }];
const weather = {
  type: "function",
  function: {
    name: "weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer", minimum: 2 } },
      required: ["city", "days"],
    },
  },
};
const schema = {
  type: "json_schema",
  json_schema: {
    name: "answer",
    strict: true,
    schema: {
      type: "object",
      properties: { word: { type: "string" }, right: { type: "boolean" } },
      required: ["word", "right"],
    },
  },
};
const client = new OpenAI({ maxRetries: 0 });
const create = (more) => client.chat.completions.create({ model, messages, ...more });
const counts = (usage) => (usage ? [usage.prompt_tokens, usage.completion_tokens] : null);

async function stream(more) {
  let text = "", usage = null, chunks = 0;
  for await (const chunk of await create({ max_tokens: 5, stream: true, ...more })) {
    chunks++;
    usage = chunk.usage ?? usage;
    for (const choice of chunk.choices) text += choice.delta.content ?? "";
  }
  return { text, usage: counts(usage), parts: chunks > 4 };
}

function call(choice) {
  const made = choice.message.tool_calls[0].function;
  return { name: made.name, arguments: JSON.parse(made.arguments), reason: choice.finish_reason };
}

async function tool(tool_choice) {
  return call((await create({ tools: [weather], tool_choice })).choices[0]);
}

async function toolStream() {
  const events = client.chat.completions.stream({ model, messages, tools: [weather], tool_choice: "required" });
  return call((await events.finalChatCompletion()).choices[0]);
}

async function answerOfTool() {
  const all = [
    ...messages,
    { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "weather", arguments: "{}" } }] },
    { role: "tool", tool_call_id: "c", content: "sunny day" },
  ];
  return (await create({ messages: all, tools: [weather], max_tokens: 2 })).choices[0].message.content;
}

async function form(response_format) {
  return JSON.parse((await create({ response_format })).choices[0].message.content);
}

async function embeddings() {
  const made = await client.embeddings.create({ model, input: ["a", "b"], dimensions: 4 });
  return {
    lengths: made.data.map((e) => e.embedding.length),
    numbers: made.data.every((e) => e.embedding.every((x) => -1 <= x && x < 1)),
  };
}

async function error(options, request) {
  try {
    await client.withOptions(options).chat.completions.create({ model, messages, ...request });
  } catch (e) {
    return { type: e.constructor.name, status: e.status, code: e.code, after: e.headers.get("retry-after") };
  }
}

async function leave() {
  for await (const _ of await create({ max_tokens: 20000, stream: true })) return true;
}

async function names() {
  const out = [];
  for await (const m of client.models.list()) out.push(m.id);
  return out;
}

const chat = await create({ max_tokens: 4 });
console.log(JSON.stringify({
  models: await names(),
  chat: { text: chat.choices[0].message.content, usage: counts(chat.usage), reason: chat.choices[0].finish_reason },
  completion: (await client.completions.create({ model, prompt: "one two", max_tokens: 3 })).choices[0].text,
  stream: await stream({}),
  streamWithUsage: await stream({ stream_options: { include_usage: true } }),
  tool: await tool({ type: "function", function: { name: "weather" } }),
  toolStream: await toolStream(),
  answerOfTool: await answerOfTool(),
  object: await form({ type: "json_object" }),
  schema: await form(schema),
  embeddings: await embeddings(),
  left: await leave(),
  wrongKey: await error({ apiKey: "wrong" }, {}),
  unknownModel: await error({}, { model: "other" }),
  limit: await error({ apiKey: "limited" }, {}),
  budget: await error({ apiKey: "spent", maxRetries: 2 }, {}),
  afterLimit: (await client.withOptions({ apiKey: "limited-once", maxRetries: 2 })
    .chat.completions.create({ model, messages, max_tokens: 1 })).choices[0].message.content,
  badRequest: await error({}, { model: "" }),
}));
