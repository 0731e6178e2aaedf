#!/usr/bin/env python3
"""Checks that an engine, or a router in front of it, answers as OpenAI's API does.

usage: check.py [--key KEY] [--prompt TEXT] [--embeddings] URL MODEL

URL is the base address, such as http://127.0.0.1:8000/v1. It needs Python alone.
"""

import argparse
import json
import sys
import time
import urllib.error
import urllib.request


class Server:
    def __init__(self, url, key):
        self.url, self.key = url.rstrip("/"), key

    def open(self, path, body=None):
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = "Bearer " + self.key
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=120)

    def json(self, path, body=None):
        with self.open(path, body) as answer:
            return json.load(answer)

    def events(self, path, body):
        """Yields the objects of a stream."""
        with self.open(path, body) as answer:
            for line in answer:
                data = line.decode().strip().removeprefix("data:").strip() if line.startswith(b"data:") else ""
                if data == "[DONE]":
                    return
                if data:
                    yield json.loads(data)


def models(server, model, _):
    names = [m["id"] for m in server.json("/models")["data"]]
    return model in names, f"models {', '.join(names)}"


def chat(server, model, prompt):
    body = {"model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": 48, "temperature": 0}
    got = server.json("/chat/completions", body)
    text, usage = got["choices"][0]["message"]["content"], got.get("usage") or {}
    return bool(text.strip()) and usage.get("completion_tokens", 0) > 0, f"{text.strip()!r}, {usage.get('prompt_tokens')} + {usage.get('completion_tokens')} tokens"


def stream(server, model, prompt):
    body = {"model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": 48, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    start, first, text, parts, usage = time.monotonic(), None, "", 0, None
    for event in server.events("/chat/completions", body):
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            if part := (choice.get("delta") or {}).get("content"):
                first = first or time.monotonic() - start
                text, parts = text + part, parts + 1
    if not parts:
        return False, "the stream has no text"
    rest = time.monotonic() - start - first
    said = f"{text.strip()!r} in {parts} parts, first after {first * 1000:.0f} ms, then {parts / max(rest, 1e-6):.0f} parts/s"
    return parts > 1 and bool(usage), said + (f", {usage['completion_tokens']} tokens" if usage else ", WITHOUT USAGE: tokens of streams cannot be counted")


def embeddings(server, model, _):
    texts = ["A cat sleeps on the sofa.", "A kitten naps on the couch.", "The central bank raised interest rates."]
    got = server.json("/embeddings", {"model": model, "input": texts})
    cat, kitten, bank = (e["embedding"] for e in sorted(got["data"], key=lambda e: e["index"]))
    near, far = cosine(cat, kitten), cosine(cat, bank)
    return near > far, f"{len(cat)} numbers; cat and kitten {near:.2f}, cat and bank {far:.2f}"


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5


def error(server, model, _):
    try:
        server.json("/chat/completions", {"model": model, "messages": "not a list"})
    except urllib.error.HTTPError as e:
        with e:
            return 400 <= e.code < 500, f"a wrong request is {e.code}"
    return False, "a wrong request was accepted"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("url")
    options.add_argument("model")
    options.add_argument("--key", default="")
    options.add_argument("--prompt", default="What is the capital of France?")
    options.add_argument("--embeddings", action="store_true", help="check embeddings instead of chat")
    options = options.parse_args()
    server, failed = Server(options.url, options.key), 0
    for check in [models, embeddings] if options.embeddings else [models, chat, stream, error]:
        try:
            good, said = check(server, options.model, options.prompt)
        except (OSError, KeyError, ValueError) as e:
            good, said = False, f"{type(e).__name__}: {e}"
        failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {check.__name__}: {said}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
