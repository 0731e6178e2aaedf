"""Creates a batch session, waits until it ends and prints its log. Needs only Python 3.

    BERTH_URL=https://berth.example.org BERTH_TOKEN=... python3 run_batch.py IMAGE COMMAND...
"""

import json
import os
import sys
import time
import urllib.request
import uuid

URL, TOKEN = os.environ["BERTH_URL"], os.environ["BERTH_TOKEN"]

CREATE = "mutation Create($input: CreateSessionInput!) { createSession(input: $input) { session { id } } }"
READ = "query Read($id: ID!) { node(id: $id) { ... on Session { status exitCode statusMessage } } }"


def request(path, body=None):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(URL + path, body, headers)) as answer:
        return answer.read()


def query(text, **variables):
    answer = json.loads(request("/graphql", json.dumps({"query": text, "variables": variables}).encode()))
    for error in answer.get("errors", []):
        raise RuntimeError(f"{error['message']} ({error['extensions'].get('code')})")
    return answer["data"]


def main(image, *command):
    session = query(CREATE, input={
        "image": image,
        "command": command,
        "slots": {"cpu": "0.1", "mem": "64m"},
        "idempotencyKey": str(uuid.uuid4()),  # a repeated request creates one session
    })["createSession"]["session"]["id"]
    while True:
        now = query(READ, id=session)["node"]
        if now["status"] in ("TERMINATED", "CANCELLED", "ERROR"):
            break
        time.sleep(1)
    sys.stdout.buffer.write(request(f"/sessions/{session}/log"))
    if now["exitCode"] != 0:
        sys.exit(f"session {session} {now['status']}: {now['statusMessage']}")


main(*sys.argv[1:])
