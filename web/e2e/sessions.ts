// Browser test of templates, clones, restarts, tags and arrays.
// It needs a running platform with the image minimal:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/sessions.ts
// BERTH_SHOTS names a directory for pictures.

import assert from "node:assert/strict";
import { runSteps, startTest } from "./stage.ts";

const stage = await startTest();
const { run, page, checkPage, admin, button, field, heading, submit } = stage;
const [template, original, clone, array, tag] = ["template", "original", "clone", "array", "tag"].map(
  (what) => `${what}-${run}`,
);

const sheet = page.getByRole("dialog", { name: "Launch a session" });
const status = (name: string) => page.locator(`.page-head [data-status="${name}"]`).waitFor({ timeout: 120_000 });
const row = (text: string) => page.locator(".grid tbody tr").filter({ hasText: text });
const sessionId = () => new URL(page.url()).pathname.split("/").at(-1)!;

async function requestOf(id: string) {
  const { node } = await admin.graphql(
    "query($id: ID!) { node(id: $id) { ... on Session { name request { image command environment tags slots type } } } }",
    { id },
  );
  return node.request;
}

/** A small batch session of the image minimal, so that several run on one machine. */
async function batch(command: string) {
  await page.keyboard.press("l");
  await sheet.getByRole("radio", { name: /minimal/ }).check({ force: true });
  await field(sheet, "CPU").fill("0.1");
  await field(sheet, "Memory, GiB").fill("0.125");
  await sheet.getByText("Batch command").click();
  if (command) await field(sheet, "Command").fill(command);
}

async function login() {
  await admin.login(stage.email, stage.password);
  await page.goto("/login");
  await stage.submitLogin(stage);
  await heading("Home");
}

/** A launch that cannot start is not saved either; a complete one becomes a template. */
async function save() {
  await batch("");
  assert(await button("Save as template", sheet).isDisabled(), "a batch session without a command can be saved");
  await field(sheet, "Command").fill("echo run $BERTH_ARRAY_INDEX; sleep 600");
  await sheet.getByLabel("Tags").fill(tag);
  await page.keyboard.press("Enter");
  await button("Save as template", sheet).click();
  const dialog = page.getByRole("dialog", { name: "Save as template" });
  await field(dialog, "Template name").fill(template);
  await checkPage("template-save");
  await submit(dialog, "Save");
  await page.getByText(`Template ${template} is saved.`).waitFor();
  await page.keyboard.press("Escape");
}

async function start() {
  await page.goto("/templates");
  await row(template).waitFor();
  await checkPage("templates");
  await button("Start or edit", row(template)).click();
  await sheet.getByText(`template ${template}`).waitFor();
  assert.equal(await field(sheet, "Command").inputValue(), "echo run $BERTH_ARRAY_INDEX; sleep 600");
  await field(sheet, "Name").fill(original);
  await button("Launch", sheet).click();
  await heading(original);
  await status("running");
  const request = await requestOf(sessionId());
  assert.deepEqual(request.tags, [tag]);
}

/** The clone has another command, and everything else of the session. */
async function again() {
  const before = await requestOf(sessionId());
  await button("Clone").click();
  await sheet.getByText(`session ${original}`).waitFor();
  await field(sheet, "Name").fill(clone);
  await field(sheet, "Command").fill("echo cloned; sleep 600");
  await checkPage("clone");
  await button("Launch", sheet).click();
  await heading(clone);
  await status("running");
  const after = await requestOf(sessionId());
  assert.deepEqual({ ...after, command: null }, { ...before, command: null });
  assert.match(after.command.join(" "), /cloned/);
}

/** A restart ends the session and starts another one with the same request and name. */
async function restart() {
  const [id, before] = [sessionId(), await requestOf(sessionId())];
  await button("Restart").click();
  const dialog = page.getByRole("dialog", { name: `Restart ${clone}?` });
  await checkPage("restart");
  await button("Restart", dialog).click();
  await page.waitForURL((url) => url.pathname.startsWith("/sessions/") && !url.pathname.endsWith(id));
  await heading(clone);
  await status("running");
  assert.deepEqual(await requestOf(sessionId()), before);
  const { node } = await admin.graphql("query($id: ID!) { node(id: $id) { ... on Session { status } } }", { id });
  assert(["TERMINATING", "TERMINATED"].includes(node.status), `the replaced session is ${node.status}`);
}

async function tags() {
  await button("Edit tags").click();
  const box = page.getByRole("combobox", { name: "Tags" });
  await box.fill(`second-${run}`);
  await page.keyboard.press("Enter");
  await button("Save").click();
  await page.getByRole("link", { name: `second-${run}` }).click();
  await page.waitForURL(/tag=/);
  await row(clone).waitFor();
  assert.equal(await row(original).count(), 0, "the filter shows a session without the tag");
}

async function members() {
  const query = "query($w: SessionWhereInput) { sessions(where: $w) { totalCount } }";
  return (await admin.graphql(query, { w: { nameContainsFold: array } })).sessions.totalCount;
}

/** Three indexes, two at a time, are one row; the third waits for a place. */
async function many() {
  await batch('test "$BERTH_ARRAY_INDEX" != 3');
  await field(sheet, "Array").fill("1-3%0");
  await field(sheet, "Name").fill(array);
  await button("Launch", sheet).click();
  await sheet.getByText(/"0" after % is not a number of members/).waitFor();
  await checkPage("array-invalid");
  await field(sheet, "Array").fill("1-3%2");
  await button("Launch", sheet).click();
  await sheet.waitFor({ state: "detached" });
  await page.goto("/sessions");
  await row(array).getByText("1 failed").waitFor({ timeout: 120_000 });
  await row(array).getByText("2 succeeded").waitFor({ timeout: 120_000 });
  assert.equal(await row(array).count(), 1, "the members of the array are rows");
  await button(`Members of ${array}`, row(array)).click();
  await row(`${array}-3`).getByText("exit code 1").first().waitFor();
  await checkPage("array");
  assert.equal(await members(), 3);
  await button("Retry 1", row(array).first()).click();
  for (let tries = 0; (await members()) !== 4; tries++) {
    assert(tries < 120, "no session for the failed index starts");
    await page.waitForTimeout(500);
  }
}

async function remove() {
  await page.goto("/templates");
  await button("Delete", row(template)).click();
  await submit(page.getByRole("dialog", { name: `Delete template ${template}?` }), "Delete");
  await row(template).waitFor({ state: "detached" });
}

async function cleanUp() {
  const { sessions } = await admin.graphql(
    "query($w: SessionWhereInput) { sessions(first: 50, where: $w) { edges { node { id } } } }",
    { w: { nameContainsFold: run, statusNotIn: ["TERMINATED", "CANCELLED", "ERROR"] } },
  );
  for (const { node } of sessions.edges)
    await admin.graphql("mutation($i: TerminateSessionInput!) { terminateSession(input: $i) { session { id } } }", {
      i: { id: node.id },
    });
}

await runSteps(
  stage,
  [
    ["log in", login],
    ["save a template", save],
    ["start from the template", start],
    ["clone", again],
    ["restart", restart],
    ["tags", tags],
    ["array", many],
    ["delete the template", remove],
  ],
  { cleanUp },
);
