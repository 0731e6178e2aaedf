// @ts-check
// Creates a batch session, follows it by a subscription and prints its log. Needs only
// Node 20 or later; the types are in JSDoc, so that tsc checks the file and Node runs it as it is.
//
//   BERTH_URL=https://berth.example.org BERTH_TOKEN=... node run-batch.mjs IMAGE COMMAND...

import { randomUUID } from "node:crypto";

const { BERTH_URL, BERTH_TOKEN } = process.env;

/** @typedef {{ status: string, exitCode: number | null, statusMessage: string }} State */

/**
 * @param {string} query
 * @param {object} variables
 * @param {string} accept
 */
async function post(query, variables, accept) {
  const answer = await fetch(`${BERTH_URL}/graphql`, {
    method: "POST",
    headers: { Authorization: `Bearer ${BERTH_TOKEN}`, "Content-Type": "application/json", Accept: accept },
    body: JSON.stringify({ query, variables }),
  });
  if (!answer.ok || !answer.body) throw new Error(`${answer.status}: ${await answer.text()}`);
  return answer;
}

/** @param {{ data?: any, errors?: { message: string }[] }} answer */
function data(answer) {
  if (answer.errors) throw new Error(answer.errors[0].message);
  return answer.data;
}

/**
 * Yields the data of the events of a subscription: server-sent events, where a line
 * "data: ..." has a GraphQL answer and a blank line ends the event.
 * @param {string} query
 * @param {object} variables
 */
async function* subscribe(query, variables) {
  const answer = await post(query, variables, "text/event-stream");
  let text = "";
  for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
    text += part;
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data:") && line.length > 6) yield data(JSON.parse(line.slice(5)));
    }
  }
}

/**
 * @param {string} image
 * @param {string[]} command
 */
async function run(image, command) {
  const create = `mutation Create($input: CreateSessionInput!) { createSession(input: $input) { session { id } } }`;
  const input = { image, command, slots: { cpu: "0.1", mem: "64m" }, idempotencyKey: randomUUID() };
  const created = await post(create, { input }, "application/json");
  const id = data(await created.json()).createSession.session.id;

  /** @type {State | undefined} */
  let last;
  const watch = `subscription Watch($id: ID!) { sessionChanged(id: $id) { status exitCode statusMessage } }`;
  for await (const event of subscribe(watch, { id })) {
    last = event.sessionChanged;
    if (["TERMINATED", "CANCELLED", "ERROR"].includes(event.sessionChanged.status)) break;
  }

  const log = await fetch(`${BERTH_URL}/sessions/${id}/log`, { headers: { Authorization: `Bearer ${BERTH_TOKEN}` } });
  process.stdout.write(await log.text());
  if (last?.exitCode !== 0) throw new Error(`session ${id} ${last?.status}: ${last?.statusMessage}`);
}

const [image, ...command] = process.argv.slice(2);
await run(image, command);
