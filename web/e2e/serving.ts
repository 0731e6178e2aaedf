// Browser test of serving: a model is deployed with a command of its own, tried, given keys, scaled, changed and deleted.
// It needs a running platform with the image python and a gateway, or the stand-in of npm run mock:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/serving.ts
// BERTH_SHOTS names a directory for pictures.

import { readFileSync } from "node:fs";
import { runSteps, startTest } from "./stage.ts";

const stage = await startTest();
const { run, page, checkPage, admin, button, field, heading, choose, submit } = stage;
const name = `walk-${run}`;
const start = 300_000;

const engine = readFileSync(new URL("../../examples/serving/engine.py", import.meta.url), "utf8"); // has no single quotes
const command = `exec python3 -c '${engine}'`;

const sheet = () => page.getByRole("dialog", { name: "Deploy a model" });
const tab = (label: string) => page.getByRole("tab", { name: label, exact: true }).click();

async function login() {
  await page.goto("/login");
  await stage.submitLogin(stage);
  await heading("Home");
  await admin.login(stage.email, stage.password);
}

/** The list has a filter, and the form marks what is missing at its fields. */
async function wizard() {
  await stage.openMainPage("Serving");
  await heading("Serving");
  await page.locator("table.grid, .empty").first().waitFor();
  await checkPage("serving");
  await page.getByRole("searchbox", { name: "Filter by name" }).fill("no-such-name");
  await page.getByText("No deployment has this name").waitFor();
  await page.getByRole("searchbox", { name: "Filter by name" }).fill("");
  await button("Deploy a model").first().click();
  const form = sheet();
  await choose(form, "Engine", "vLLM");
  await form.getByText(/^Options of vLLM/).click();
  await field(form, "dtype").waitFor();
  await checkPage("deploy-vllm");
  await choose(form, "Engine", /^Custom/);
  await button("Deploy", form).click();
  await form.getByText(/Use 1 to 63 lower-case letters/).waitFor();
  await form.getByText("Enter the command that starts the engine.").waitFor();
  await checkPage("deploy-errors");
}

async function deploy() {
  const form = sheet();
  await field(form, "Name").fill(name);
  await form
    .getByRole("radio", { name: /python/ })
    .first()
    .check({ force: true });
  await field(form, "Command").fill(command);
  await field(form, "Port").fill("8000");
  await field(form, "Path of the health check").fill("/health");
  await field(form, "CPU").fill("0.2");
  await field(form, "Memory, GiB").fill("0.25");
  await form
    .getByText(/Starts now|pending/i)
    .first()
    .waitFor();
  await checkPage("deploy-filled");
  await button("Deploy", form).click();
  await heading(name);
  await page.getByRole("region", { name: "Replicas" }).locator("tbody tr").first().waitFor({ timeout: start });
  await checkPage("deployment-starting");
  await page.locator('.page-head [data-status="serving"]').waitFor({ timeout: start });
  await page.getByRole("tab", { name: "Python", exact: true }).click();
  await page.getByText("from openai import OpenAI").waitFor();
  await checkPage("deployment");
}

/** A chat streams its answer as text, with the measured times. */
async function tryOut() {
  await tab("Try it");
  for (const kind of ["Chat", "Completion", "Embedding"]) {
    await page.getByRole("radiogroup", { name: "Kind of request" }).getByText(kind, { exact: true }).click();
    await field(page, kind === "Embedding" ? "Text" : "Prompt").fill("What is a deployment?");
    await button("Send").click();
    const answer = page.getByLabel("Answer", { exact: true });
    await answer.filter({ hasText: /deployment\?|behind one address|\[/ }).waitFor({ timeout: 60_000 });
    await button("Stop").waitFor({ state: "detached" });
    await checkPage(`try-${kind.toLowerCase()}`);
  }
}

/** A key is shown once. Its limits can be changed, and it can be revoked. */
async function keys() {
  await tab("Keys");
  await button("New key").click();
  const dialog = page.getByRole("dialog", { name: "New key" });
  await field(dialog, "Name").fill("walk");
  await field(dialog, "Tokens in all").fill("1000");
  await checkPage("key-new");
  await submit(dialog, "Create");
  await page.getByRole("region", { name: "Your new key" }).waitFor();
  await checkPage("key-secret");
  await button("I have saved it").click();
  await button("Limits of walk").click();
  const limits = page.getByRole("dialog", { name: "Limits of walk" });
  await field(limits, "Requests in a minute").fill("60");
  await submit(limits, "Save");
  await page.getByText("60 requests/min").waitFor();
  await checkPage("keys");
  await button("Revoke walk").click();
  const confirm = page.getByRole("dialog", { name: "Revoke key walk?" });
  await confirm.waitFor();
  await checkPage("key-revoke");
  await submit(confirm, "Revoke");
  await page.getByText("walk was revoked.").waitFor();
}

/** A wrong number is marked at its field. */
async function scaling() {
  await tab("Scaling");
  await field(page, "Maximum").fill("0");
  await button("Save").click();
  await page.getByText("The maximum must be at least 1, and not below the minimum.").waitFor();
  await field(page, "Maximum").fill("3");
  await button("Add a target").click();
  await field(page, "One replica takes").fill("16");
  await button("Add a schedule").click();
  await checkPage("scaling");
  await button("Save").click();
  await page.getByText("The scaling was saved.").waitFor();
}

async function settings() {
  await tab("Settings");
  const region = page.getByRole("region", { name: "Strategy" });
  await choose(region, "Strategy", "Canary");
  await field(region, "Steps, %").fill("50, 10");
  await button("Save", region).click();
  await region.getByText(/Enter growing percentages/).waitFor();
  await checkPage("settings");
  await choose(region, "Strategy", "Blue-green");
  await checkPage("settings-blue-green");
  await choose(region, "Strategy", "Rolling");
  await button("Save", region).click();
  await page.getByText("The strategy was saved.").waitFor();
}

/** A new revision begins as the current one. The page shows what differs. */
async function revise() {
  await button("New revision").click();
  const form = page.getByRole("dialog", { name: `New revision of ${name}` });
  await field(form, "Environment").fill("GREETING=hello");
  await field(form, "Comment").fill("a greeting");
  await checkPage("revision-new");
  await button("Start the change", form).click();
  await form.waitFor({ state: "detached" });
  await tab("Revisions");
  const difference = page.getByRole("region", { name: "Comparison" });
  await difference.getByText("env GREETING").waitFor();
  await checkPage("revisions");
  await tab("Overview");
  await page
    .getByText(/from revision 1 to 2|Revision 2: 100 %/)
    .first()
    .waitFor();
  await checkPage("deployment-changing");
  if (await button("Give up the change").isVisible()) {
    await button("Give up the change").click();
    await checkPage("roll-back");
    await submit(page.getByRole("dialog", { name: "Give up the change?" }), "Give up the change");
  }
  await page.locator('.page-head [data-status="serving"]').waitFor({ timeout: start });
}

async function history() {
  await tab("History");
  await page.getByRole("table", { name: "History" }).getByText("Created").waitFor();
  await checkPage("history");
  await page.setViewportSize({ width: 390, height: 860 });
  await tab("Overview");
  await page.getByRole("region", { name: "Traffic" }).waitFor();
  await stage.screenshot(page, "deployment-390");
  await page.setViewportSize({ width: 1360, height: 860 });
}

async function remove() {
  await button("Delete").click();
  const dialog = page.getByRole("dialog", { name: `Delete deployment ${name}?` });
  await field(dialog, `Type ${name} to confirm`).fill(name);
  await checkPage("deployment-delete");
  await submit(dialog, "Delete");
  await page.getByText(`${name} is being deleted.`).waitFor();
  await page.locator('.page-head [data-status="ended"]').waitFor({ timeout: start });
  await checkPage("deployment-ended");
}

async function cleanUp() {
  const { deployments } = await admin.graphql(
    "query($w: DeploymentWhereInput) { deployments(first: 10, where: $w) { edges { node { id } } } }",
    { w: { name, endedAtIsNil: true } },
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
    ["see the form and its errors", wizard],
    ["deploy a model", deploy],
    ["try it", tryOut],
    ["make and revoke a key", keys],
    ["scale", scaling],
    ["choose a strategy", settings],
    ["start a revision", revise],
    ["read the history", history],
    ["delete it", remove],
  ],
  { cleanUp },
);
