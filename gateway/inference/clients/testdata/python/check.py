"""Asks the router with OpenAI's client in Python and prints what it got as JSON."""

import json
import os

import openai

MODEL = os.environ["MODEL"]
WORDS = [{"role": "user", "content": "one two three"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 2}},
            "required": ["city", "days"],
        },
    },
}
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"word": {"type": "string"}, "right": {"type": "boolean"}},
            "required": ["word", "right"],
        },
    },
}
client = openai.OpenAI(max_retries=0)
create = client.chat.completions.create


def counts(usage):
    return usage and [usage.prompt_tokens, usage.completion_tokens]


def stream(**more):
    text, usage, chunks = "", None, 0
    for chunk in create(model=MODEL, messages=WORDS, max_tokens=5, stream=True, **more):
        chunks += 1
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
    return {"text": text, "usage": counts(usage), "parts": chunks > 4}


def call(choice):
    made = choice.message.tool_calls[0]
    return {"name": made.function.name, "arguments": json.loads(made.function.arguments), "reason": choice.finish_reason}


def tool(**more):
    return call(create(model=MODEL, messages=WORDS, tools=[WEATHER], **more).choices[0])


def tool_stream():
    request = dict(model=MODEL, messages=WORDS, tools=[WEATHER], tool_choice="required")
    with client.chat.completions.stream(**request) as events:
        return call(events.get_final_completion().choices[0])


def answer_of_tool():
    messages = WORDS + [
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "sunny day"},
    ]
    return create(model=MODEL, messages=messages, tools=[WEATHER], max_tokens=2).choices[0].message.content


def form(response_format):
    return json.loads(create(model=MODEL, messages=WORDS, response_format=response_format).choices[0].message.content)


def embeddings():
    made = client.embeddings.create(model=MODEL, input=["a", "b"], dimensions=4)
    return {"lengths": [len(e.embedding) for e in made.data], "numbers": all(-1 <= x < 1 for e in made.data for x in e.embedding)}


def error(client=client, model=MODEL, messages=WORDS):
    try:
        client.chat.completions.create(model=model, messages=messages)
    except openai.APIStatusError as e:
        return {"type": type(e).__name__, "status": e.status_code, "code": e.code, "after": e.response.headers.get("retry-after")}


def leave():
    for _ in create(model=MODEL, messages=WORDS, max_tokens=20000, stream=True):
        return True


chat = create(model=MODEL, messages=WORDS, max_tokens=4)
print(json.dumps({
    "models": [m.id for m in client.models.list()],
    "chat": {"text": chat.choices[0].message.content, "usage": counts(chat.usage), "reason": chat.choices[0].finish_reason},
    "completion": client.completions.create(model=MODEL, prompt="one two", max_tokens=3).choices[0].text,
    "stream": stream(),
    "streamWithUsage": stream(stream_options={"include_usage": True}),
    "tool": tool(tool_choice={"type": "function", "function": {"name": "weather"}}),
    "toolStream": tool_stream(),
    "answerOfTool": answer_of_tool(),
    "object": form({"type": "json_object"}),
    "schema": form(SCHEMA),
    "embeddings": embeddings(),
    "left": leave(),
    "wrongKey": error(client.with_options(api_key="wrong")),
    "unknownModel": error(model="other"),
    "limit": error(client.with_options(api_key="limited")),
    "budget": error(client.with_options(api_key="spent", max_retries=2)),
    "afterLimit": client.with_options(api_key="limited-once", max_retries=2)
    .chat.completions.create(model=MODEL, messages=WORDS, max_tokens=1).choices[0].message.content,
    "badRequest": error(model=""),
}))
