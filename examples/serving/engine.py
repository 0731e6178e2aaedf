"""An engine without a model, for trying out deployments: it answers with the words of the prompt.

It speaks the part of the API of OpenAI that most programs use, and its /health is for the health check.
It uses only the standard library: python3 engine.py [PORT]
"""
import hashlib
import http.server
import json
import sys
import time


def prompt(body):
    """Return the text of a request."""
    if "messages" in body:
        text = body["messages"][-1].get("content") or ""
        return text if isinstance(text, str) else " ".join(part.get("text", "") for part in text)
    text = body.get("prompt", "")
    return text if isinstance(text, str) else " ".join(text)


def vector(text):
    """Return an embedding: the same text has the same one, and that is all."""
    return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()]


class Engine(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def event(self, text):
        data = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def do_GET(self):
        self.send({"status": "ok"} if self.path == "/health" else {"error": {"message": "not found"}}, 200 if self.path == "/health" else 404)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if self.path == "/v1/embeddings":
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            count = sum(len(text.split()) for text in texts)
            data = [{"object": "embedding", "index": i, "embedding": vector(text)} for i, text in enumerate(texts)]
            return self.send({"object": "list", "model": body.get("model"), "data": data, "usage": {"prompt_tokens": count, "total_tokens": count}})
        if self.path not in ("/v1/chat/completions", "/v1/completions"):
            return self.send({"error": {"message": f"there is no {self.path}"}}, 404)
        return self.answer(body, chat=self.path.endswith("chat/completions"))

    def answer(self, body, chat):
        words = f"You said: {prompt(body)}".split()[: body.get("max_tokens") or 1000]
        usage = {"prompt_tokens": len(prompt(body).split()), "completion_tokens": len(words)}
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        head = {"id": "answer", "created": int(time.time()), "model": body.get("model"), "object": "chat.completion" if chat else "text_completion"}
        if not body.get("stream"):
            text = " ".join(words)
            whole = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
            return self.send({**head, "choices": [{"index": 0, "finish_reason": "stop", **whole}], "usage": usage})
        if chat:
            head["object"] = "chat.completion.chunk"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i, word in enumerate(words):
            text = word if i == 0 else " " + word
            part = {"delta": {"content": text}} if chat else {"text": text}
            finish = "stop" if i == len(words) - 1 else None
            self.event(json.dumps({**head, "choices": [{"index": 0, "finish_reason": finish, **part}]}))
            time.sleep(0.02)
        if (body.get("stream_options") or {}).get("include_usage"):
            self.event(json.dumps({**head, "choices": [], "usage": usage}))
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    http.server.ThreadingHTTPServer(("0.0.0.0", port), Engine).serve_forever()
