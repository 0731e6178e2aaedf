// Browser test of chats: two deployments answer side by side; prompts and answers have branches and files; a blind chat
// is voted on, repeated, exported and shared; a superadmin allows an endpoint.
// It needs a running platform with the image python and a gateway, or the stand-in of npm run mock:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/chat.ts
// BERTH_SHOTS names a directory for pictures.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { runSteps, startTest } from "./stage.ts";

const stage = await startTest();
const { run, page, checkPage, admin, button, field, heading, submit } = stage;
const names = [`chat-${run}-a`, `chat-${run}-b`];
const start = 300_000;

const engine = readFileSync(new URL("../../examples/serving/engine.py", import.meta.url), "utf8");
const prompt = () => page.getByLabel("Prompt", { exact: true });
const answerOf = (name: string) => page.getByRole("article", { name: `Answer of ${name}` });
const lastAnswer = (name: string) => answerOf(name).last();
const done = (name: string) =>
  page.locator('article[data-status="done"]').and(answerOf(name)).last().waitFor({ timeout: 60_000 });
const more = async (item: string) => {
  await button("More").click();
  await page.getByRole("menuitem", { name: item }).click();
};

async function login() {
  await page.goto("/login");
  await stage.submitLogin(stage);
  await heading("Home");
  await admin.login(stage.email, stage.password);
}

async function deploy() {
  const { images } = await admin.graphql("{ images(first: 100) { edges { node { reference } } } }");
  const image = images.edges.map((e: any) => e.node.reference).find((r: string) => r.includes("python"));
  assert(image, "the platform has no image named python");
  const request = { image, command: ["python3", "-c", engine], slots: { cpu: "0.2", mem: "256m" } };
  const ids: string[] = [];
  for (const name of names) {
    const revision = { variant: "custom", port: 8000, health: "/health", request };
    const made = await admin.graphql(
      "mutation($i: CreateDeploymentInput!) { createDeployment(input: $i) { deployment { id } } }",
      { i: { name, revision, scaling: { min: 1, max: 1 } } },
    );
    ids.push(made.createDeployment.deployment.id);
  }
  await page.goto(`/serving/${ids[0]}`);
  await page.locator('.page-head [data-status="serving"]').waitFor({ timeout: start });
  await page.goto(`/serving/${ids[1]}`);
  await page.locator('.page-head [data-status="serving"]').waitFor({ timeout: start });
  await page.getByRole("region", { name: "Votes of chats" }).waitFor();
}

/** Models are added and removed, parameters are checked, and the draft survives a reload. */
async function draft() {
  await page.getByRole("link", { name: `Chat with ${names[1]}` }).click();
  await heading("New chat");
  await prompt().fill("Hello **there**");
  await page.getByRole("combobox", { name: "Add a model" }).fill(names[0]);
  await page.getByRole("option", { name: names[0] }).click();
  await page.getByRole("listitem").filter({ hasText: names[0] }).waitFor();
  await button(`Parameters of ${names[0]}`).click();
  const dialog = page.getByRole("dialog", { name: `Parameters of ${names[0]}` });
  await field(dialog, "Temperature").fill("9");
  await field(dialog, "JSON schema of the answer").fill("{");
  await button("Save", dialog).click();
  await dialog.getByText("Enter a number from 0 to 2.").waitFor();
  await dialog.getByText(/This is not JSON/).waitFor();
  await checkPage("chat-parameters");
  await field(dialog, "Temperature").fill("0.5");
  await field(dialog, "JSON schema of the answer").fill("");
  await submit(dialog, "Save");
  await button(`Parameters of ${names[0]}`).getByText("Parameters (1)").waitFor();
  await page.waitForTimeout(300);
  await page.reload();
  await page.getByText("Parameters (1)").waitFor();
  assert.equal(await prompt().inputValue(), "Hello **there**");
  await checkPage("chat-draft");
}

async function files() {
  const input = page.locator('input[type="file"][multiple]');
  await input.setInputFiles([
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("a note") },
    { name: "tool.exe", mimeType: "application/octet-stream", buffer: Buffer.from([0x4d, 0x5a, 0, 0xff]) },
  ]);
  await page.getByText("tool.exe is neither an image nor a text in UTF-8.").waitFor();
  await page.getByRole("button", { name: /^notes\.txt/ }).click();
  const shown = page.getByRole("dialog", { name: "notes.txt" });
  await shown.getByText("a note").waitFor();
  await page.keyboard.press("Escape");
  await shown.waitFor({ state: "detached" });
}

/** Enter sends. All models answer, with their measurements. */
async function ask() {
  await prompt().press("End");
  await prompt().press("Shift+Enter");
  await prompt().pressSequentially("line two");
  await prompt().press("Enter");
  await page.waitForURL(/\/chat\/[0-9a-f-]{36}/);
  for (const name of names) await done(name);
  await lastAnswer(names[0]).locator("strong", { hasText: "there" }).waitFor();
  await lastAnswer(names[0])
    .getByText(/first token/)
    .waitFor();
  await page.getByRole("button", { name: /^notes\.txt/ }).waitFor();
  assert.equal(await prompt().inputValue(), "");
  await checkPage("chat");
}

async function branches() {
  await button(`Regenerate the answer of ${names[1]}`).click();
  const switches = page.getByRole("group", { name: `Answers of ${names[1]}` });
  await switches.getByText("2/2").waitFor();
  await done(names[1]);
  await button("Previous", switches).click();
  await switches.getByText("1/2").waitFor();
  await button("Edit the prompt").click();
  await page.getByLabel("Changed prompt").fill("Another question");
  await checkPage("chat-edit");
  await button("Send in a new branch").click();
  const versions = page.getByRole("group", { name: "Versions of the prompt" });
  await versions.getByText("2/2").waitFor();
  for (const name of names) await done(name);
  await button("Previous", versions).click();
  await versions.getByText("1/2").waitFor();
  await lastAnswer(names[0]).getByText("there").waitFor();
  await button("Next", versions).click();
  await lastAnswer(names[0]).getByText("Another question").waitFor();
}

/** A long answer is stopped, and keeps its text. A reload shows it as it was. */
async function stop() {
  await prompt().fill(`long ${"word ".repeat(900)}`);
  await button("Send").click();
  await lastAnswer(names[0]).getByText(/word/).waitFor();
  await button("Stop all").click();
  for (const name of names) await lastAnswer(name).getByText("Stopped", { exact: true }).waitFor();
  await page.reload();
  await lastAnswer(names[1]).getByText("Stopped", { exact: true }).waitFor();
}

async function continueWithOne() {
  await button(`Continue only with this answer of ${names[0]}`).click();
  await prompt().fill("Only you");
  await prompt().press("Enter");
  await lastAnswer(names[0]).getByText("Only you").waitFor();
  await done(names[0]);
  assert.equal(await lastAnswer(names[1]).getByText("Only you").count(), 0);
}

/** Hostile text of a model is shown as text, and loads nothing. */
async function hostile() {
  const asked: string[] = [];
  page.on("request", (r) => asked.push(r.url()));
  await prompt().fill(
    '![p](https://evil.example/x.png) <img src="https://evil.example/y.png"> [l](javascript:alert(1)) a\u202Eb',
  );
  await prompt().press("Enter");
  await lastAnswer(names[0])
    .getByText(/evil\.example \(not loaded\)/)
    .waitFor();
  await done(names[0]);
  await lastAnswer(names[0])
    .getByText(/U\+202E/)
    .waitFor();
  assert.equal(await lastAnswer(names[0]).locator("img, a[href^=javascript]").count(), 0);
  assert.deepEqual(
    asked.filter((url) => url.includes("evil.example")),
    [],
  );
}

async function blind() {
  await page.goto(`/chat?models=${names.join(",")}&prompt=Who+are+you%3F`);
  await page.getByRole("switch", { name: "Blind" }).check({ force: true });
  await checkPage("chat-blind-draft");
  await button("Send").click();
  for (const letter of ["A", "B"]) await done(`Model ${letter}`);
  const vote = page.getByRole("group", { name: "Which answer is the best?" });
  await vote.waitFor();
  assert.equal(await page.locator(".chat-main").getByText(names[0]).count(), 0, "the name is shown before the vote");
  await checkPage("chat-blind");
  await prompt().press("Escape");
  await page.keyboard.press("1");
  for (const name of names) await answerOf(name).waitFor();
  await page.getByText("blind, names shown").waitFor();
  await checkPage("chat-voted");
  await more("Votes of the domain");
  const tally = page.getByRole("dialog", { name: "Votes of the domain" });
  await tally.getByText(names[0]).waitFor();
  await checkPage("chat-tally");
  await page.keyboard.press("Escape");
  await tally.waitFor({ state: "detached" });
}

async function replay() {
  await more("Replays");
  const dialog = page.getByRole("dialog", { name: "Replays" });
  await button("Replay", dialog).click();
  await dialog.getByText(/1 of 1 answers are repeated/).waitFor({ timeout: 60_000 });
  await button("Show the differences of prompt 1", dialog).click();
  await dialog.getByRole("group", { name: "Differences by word" }).waitFor();
  await checkPage("chat-replay");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
}

/** Chats are exported, shared, renamed, found and deleted. */
async function keep() {
  const download = page.waitForEvent("download");
  await more("Export as JSON");
  const json = readFileSync((await (await download).path())!, "utf8");
  assert.ok(JSON.parse(json));
  const second = page.waitForEvent("download");
  await more("Export as Markdown");
  assert.match(readFileSync((await (await second).path())!, "utf8"), /Who are you\?/);
  await page.getByRole("switch", { name: "Shared" }).click({ force: true });
  const list = page.getByRole("navigation", { name: "Chats" });
  await list.getByText("· shared").waitFor();
  await button("Actions of Who are you?", list).first().click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  const rename = page.getByRole("dialog", { name: "Rename Who are you?" });
  await field(rename, "Title").fill(`Renamed ${run}`);
  await submit(rename, "Rename");
  await heading(`Renamed ${run}`);
  await list.locator('input[type="file"]').setInputFiles({
    name: "chat.json",
    mimeType: "application/json",
    buffer: Buffer.from(json),
  });
  await heading("Who are you?");
  await page.getByRole("searchbox", { name: "Search in chats" }).fill(`Renamed ${run}`);
  await list.getByRole("listitem").filter({ hasText: "Who are you?" }).waitFor({ state: "detached" });
  await button(`Actions of Renamed ${run}`, list).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  const confirm = page.getByRole("dialog", { name: `Delete Renamed ${run}?` });
  await stage.screenshot(page, "chat-delete");
  await submit(confirm, "Delete");
  await list.getByText("No chat contains this text").waitFor();
}

/** On a phone, the list is a drawer, and one column fills the screen. */
async function phone() {
  await page.setViewportSize({ width: 360, height: 740 });
  await page.reload();
  await button("Chats").click();
  const drawer = page.getByRole("dialog", { name: "Chats" });
  await drawer.getByRole("link", { name: /Hello/ }).first().click();
  await drawer.waitFor({ state: "detached" });
  await lastAnswer(names[0]).waitFor();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wide, 0, `${wide} px too wide for a phone`);
  await stage.screenshot(page, "chat-360");
  await page.setViewportSize({ width: 1360, height: 860 });
}

async function endpoints() {
  await stage.openMainPage("Admin");
  await stage.openAdminPage("Chat endpoints");
  await heading("Chat endpoints");
  await button("New endpoint").click();
  const form = page.getByRole("dialog", { name: "New endpoint" });
  await field(form, "Name").fill(`walk-${run}`);
  await field(form, "Address").fill("https://api.example.com/v1");
  await field(form, "Models").fill("large\nsmall");
  await field(form, "Key").fill("secret-key");
  await checkPage("chat-endpoint-new");
  await submit(form, "Create");
  const row = stage.row(`walk-${run}`);
  await row.getByText("with a key").waitFor();
  await button(`Disable walk-${run}`).click();
  await row.getByText("Disabled").waitFor();
  await button(`Edit walk-${run}`).click();
  const edit = page.getByRole("dialog", { name: `Edit walk-${run}` });
  await field(edit, "Models").fill("large");
  await submit(edit, "Save");
  await row.getByText("large", { exact: true }).waitFor();
  await checkPage("chat-endpoints");
  await button(`Delete walk-${run}`).click();
  await submit(page.getByRole("dialog", { name: `Delete walk-${run}?` }), "Delete");
  await row.waitFor({ state: "detached" });
}

async function cleanUp() {
  const { chats } = await admin.graphql("{ chats(first: 50) { edges { node { id } } } }");
  for (const { node } of chats.edges)
    await admin.graphql("mutation($i: DeleteChatInput!) { deleteChat(input: $i) { id } }", { i: { id: node.id } });
  const { deployments } = await admin.graphql(
    "query($w: DeploymentWhereInput) { deployments(first: 10, where: $w) { edges { node { id } } } }",
    { w: { nameContainsFold: `chat-${run}`, endedAtIsNil: true } },
  );
  for (const { node } of deployments.edges)
    await admin.graphql("mutation($i: DeleteDeploymentInput!) { deleteDeployment(input: $i) { deployment { id } } }", {
      i: { id: node.id, force: true },
    });
}

await runSteps(
  stage,
  [
    ["log in", login],
    ["deploy two models", deploy],
    ["draft a chat", draft],
    ["attach files", files],
    ["ask both", ask],
    ["repeat and branch", branches],
    ["stop", stop],
    ["continue with one", continueWithOne],
    ["show hostile text", hostile],
    ["vote blindly", blind],
    ["replay", replay],
    ["keep, find and delete chats", keep],
    ["use a phone", phone],
    ["allow an endpoint", endpoints],
  ],
  { cleanUp },
);
