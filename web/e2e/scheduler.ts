// Browser test of the scheduler's pages: pending reasons and suggestions, the queue of a group, the dry run of the launch
// sheet, settings and shares of a group, cordon and drain, idle checkers. It needs a running cluster with accelerators
// that offer shares:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/scheduler.ts
// The credentials must be those of a superadmin. BERTH_SHOTS names a directory for screenshots.

import assert from "node:assert/strict";
import type { Request } from "playwright-core";
import type { Variables } from "./account/api.ts";
import { begin, walk } from "./stage.ts";

const stage = await begin();
const { run, page, look, admin, button, choose, dialog, field, heading, pick, send } = stage;
const [group, checker, waits, later, tried, together] = ["group", "checker", "waits", "later", "tried", "together"].map(
  (what) => `sched-${what}-${run}`,
);
const made: Record<string, any> = { sessions: [] };

const status = (name: string) => page.locator(`.page-head [data-status="${name}"]`).waitFor({ timeout: 60_000 });

const adminPage = async (label: string) => {
  await stage.place("Admin");
  await stage.adminPage(label);
  await heading(label);
};

async function ask(name: string, share: string | number, more = {}) {
  const { createSession } = await admin.ask(
    "mutation($i: CreateSessionInput!) { createSession(input: $i) { session { id } } }",
    {
      i: {
        name,
        image: made.image,
        slots: { cpu: "0.1", mem: "64m", [made.slot]: String(share) },
        resourceGroup: made.group,
        ...more,
      },
    },
  );
  made.sessions.push(createSession.session.id);
  return createSession.session.id;
}

/**
 * Allocates 3/4 of every device, so that a request for 1/2 fits into the sum of the free shares but not on any single
 * device.
 */
async function pieces() {
  await admin.login(stage.email, stage.password);
  const { agents, images, viewer } = await admin.ask(`{
    agents(first: 50) { edges { node { id name resourceGroup { id name } devices { id capacity occupied } } } }
    images(first: 50, where: { status: ALIVE }) { edges { node { reference } } } viewer { projects { id name } } }`);
  const cells = (agent: any) =>
    agent.devices.flatMap((d: any) =>
      Object.keys(d.capacity)
        .filter((slot) => slot.endsWith(".shares"))
        .map((slot) => ({ slot, free: Number(d.capacity[slot]) - Number(d.occupied[slot] ?? 0) })),
    );
  const agent = agents.edges.map((e: any) => e.node).find((a: any) => cells(a).length > 1);
  assert(agent, "no agent gives parts of several devices");
  Object.assign(made, {
    agent: agent.name,
    agentId: agent.id,
    group: agent.resourceGroup.id,
    groupName: agent.resourceGroup.name,
    slot: cells(agent)[0].slot,
    project: viewer.projects[0].name,
  });
  made.image = (images.edges.find((e: any) => e.node.reference.includes("minimal")) ?? images.edges[0]).node.reference;
  for (const [i] of cells(agent)
    .filter((c: any) => c.slot === made.slot)
    .entries())
    await ask(`sched-holds-${i}-${run}`, 0.75);
  for (let tries = 0; ; tries++) {
    const { sessions } = await admin.ask(
      "query($ids: [ID!]!) { sessions: nodes(ids: $ids) { ... on Session { status } } }",
      { ids: made.sessions },
    );
    if (sessions.every((s: any) => s.status === "RUNNING")) break;
    assert(tries < 240, `the machine is not free: ${JSON.stringify(sessions)}`);
    await new Promise((done) => setTimeout(done, 500));
  }
  made.waits = await ask(waits, 0.5);
  made.later = await ask(later, 0.5);
  await page.goto("/login");
  await stage.enter(stage);
  await heading("Home");
}

async function queue() {
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  await heading("Queue");
  await choose(page, "Resource group", made.groupName);
  const rows = page.getByRole("table", { name: "Queue" }).getByRole("row");
  await rows.filter({ hasText: waits }).waitFor();
  await rows.filter({ hasText: later }).waitFor();
  const [first, second] = [
    await rows.filter({ hasText: waits }).innerText(),
    await rows.filter({ hasText: later }).innerText(),
  ];
  assert(Number.parseInt(first, 10) < Number.parseInt(second, 10), `${first} is not before ${second}`);
  await look("queue");
}

/** The page explains why the session is pending. A click on a suggestion starts it. */
async function why() {
  await page.getByRole("link", { name: waits }).click();
  await heading(waits);
  await status("pending");
  const panel = page.getByRole("region", { name: "Why it is pending" });
  await panel
    .getByText(/not on one device/)
    .first()
    .waitFor();
  await panel.getByRole("list", { name: "Machines left after each check" }).waitFor();
  const offer = panel
    .getByRole("list", { name: "Ways to start now" })
    .getByRole("listitem")
    .filter({ hasText: /^With 0\.2/ })
    .first();
  await offer.waitFor({ timeout: 60_000 });
  await look("why");
  await offer.getByRole("button").click();
  await status("running");
  await page.goto(`/sessions/${made.later}`);
  await heading(later);
  await page.getByRole("region", { name: "Why it is pending" }).waitFor();
  await page.getByText("The terminal opens when the session runs").waitFor(); // this part of the page is rendered last
  await look("why-later");
}

/** The launch sheet runs a dry run as the user types, and shows whether the session would start. */
async function launch() {
  const tries: string[] = [];
  const note = (request: Request) => tries.push(request.postData() ?? "");
  page.on("request", note);
  await page.keyboard.press("l");
  const sheet = page.getByRole("dialog", { name: "Launch a session" });
  await sheet
    .getByRole("radiogroup", { name: "Image" })
    .getByRole("radio")
    .filter({ hasText: made.image.split("/").at(-1) })
    .first()
    .click();
  await field(sheet, "CPU").fill("0.1");
  await field(sheet, "Memory, GiB").fill("0.0625");
  await sheet.getByRole("button", { name: "0.5", exact: true }).click();
  const preview = sheet.locator(".preview");
  await preview.getByText(/^Would be pending/).waitFor();
  page.off("request", note);
  // There was no dry run before an image was selected.
  assert.deepEqual(
    tries.filter((body) => body.includes("query DryRun") && body.includes('"image":""')),
    [],
  );
  await look("launch-waits");
  await preview.getByRole("button", { name: /0\.2/ }).first().click();
  await preview.getByText(`Starts now on ${made.agent}`).waitFor();
  await sheet.getByText("Schedule and placement").click();
  await field(sheet, "Time limit").fill("soon");
  await sheet.getByText("Enter a time such as 30min, 12h or 2d, or leave empty.").waitFor({ state: "detached" });
  await field(sheet, "Time limit").fill("2h");
  await pick(sheet, "Start after", waits);
  await preview.getByText(/^Would be pending/).waitFor();
  await look("launch-when");
  await button(`Remove ${waits}`, sheet).click();
  await button("New session group", sheet).click();
  const form = dialog("New session group");
  await field(form, "Name").fill(together);
  await send(form, "Create");
  await field(sheet, "Name").fill(tried);
  await preview.getByText(`Starts now on ${made.agent}`).waitFor();
  await look("launch-starts");
  await button("Launch", sheet).click();
  await heading(tried);
  await status("running");
  made.tried = new URL(page.url()).pathname.split("/").at(-1);
  made.sessions.push(made.tried);
  await page.getByRole("tab", { name: "Config" }).click();
  await page.getByText(/^2 h, until /).waitFor();
  await look("session-asked");
}

async function settings() {
  await adminPage("Resource groups");
  await button("New group").click();
  const form = dialog("New resource group");
  await field(form, "Name").fill(group);
  await choose(form, "Queue order", "Fair share");
  await field(form, "Half-life of usage").fill("a while");
  await form.getByText("Enter a time such as 10min, 12h or 7d.").waitFor();
  await field(form, "Half-life of usage").fill("2d");
  await choose(form, "Preemption", "Stop and reschedule");
  await choose(form, "Sessions of a lost agent", "Reschedule");
  await field(form, "Pending timeout").fill("12h");
  await look("group-scheduling");
  await send(form, "Create");
  await page.getByRole("button", { name: group, exact: true }).click();
  const panel = dialog(group);
  await panel.getByText("2 d, ignored after 28 d").waitFor();
  await panel.getByText("12 h", { exact: true }).waitFor();
  await button("Set a weight", panel).click();
  const weigh = dialog("Set a weight");
  await pick(weigh, "Project", made.project);
  await field(weigh, "Weight").fill("3");
  await look("group-weight");
  await send(weigh, "Save");
  await panel.getByRole("list", { name: "Weights" }).getByText(`project ${made.project}`).waitFor();
  await look("group-shares");
  await panel.getByRole("button", { name: `Remove the weight of project ${made.project}` }).click();
  await panel.getByRole("list", { name: "Weights" }).waitFor({ state: "detached" });
  await button("Close", panel).click();
  // The group that is in use shows the usage in its shares.
  await page.getByRole("button", { name: made.groupName, exact: true }).click();
  await dialog(made.groupName)
    .getByRole("table", { name: "Current shares" })
    .getByRole("row")
    .filter({ hasText: stage.email })
    .waitFor();
  await look("group-standing");
  await button("Close", dialog(made.groupName)).click();
  await page.getByRole("button", { name: group, exact: true }).click();
  await button("Delete", panel).click();
  await button("Delete", dialog(`Delete ${group}?`)).click();
  await page.getByRole("button", { name: group, exact: true }).waitFor({ state: "detached" });
}

async function machines() {
  await adminPage("Agents");
  await button(`Cordon ${made.agent}`).click();
  const closing = dialog(`Cordon ${made.agent}`);
  await field(closing, "Reason").fill("new memory");
  await send(closing, "Cordon");
  const row = page.getByRole("table", { name: "Agents" }).getByRole("row").filter({ hasText: made.agent });
  await row.getByText("cordoned: new memory").waitFor();
  await button(`Drain ${made.agent}`).click();
  const drain = dialog(`Drain ${made.agent}`);
  await field(drain, "Time until the deadline").fill("2h");
  await look("drain-form");
  await send(drain, "Drain");
  await row.getByText(/draining: \d+ sessions left, 1 h 59 min|2 h/).waitFor();
  await look("agents");
  await page.getByRole("navigation", { name: "Main navigation" }).getByRole("link", { name: "Cluster" }).click();
  await page
    .locator(`[data-agent="${made.agent}"]`)
    .getByText(/^draining: /)
    .waitFor();
  await look("cluster-drain");
  await page.goto(`/sessions/${made.tried}`);
  await page
    .getByRole("region", { name: "Drain" })
    .getByText(/this session restarts on another machine in/)
    .waitFor();
  await look("drain-session");
  await adminPage("Agents");
  await button(`Cancel drain of ${made.agent}`).click();
  await button(`Cordon ${made.agent}`).waitFor();
}

async function idle() {
  await adminPage("Idle checkers");
  await button("New checker").click();
  const form = dialog("New idle checker");
  await field(form, "Name").fill(checker);
  await choose(form, "Criterion", "Low utilization");
  await form.getByLabel("Slot 1", { exact: true }).fill("cpu");
  await form.getByText(/It would stop \d+ sessions? now/).waitFor();
  await look("idle-form");
  await choose(form, "Criterion", "Age");
  await field(form, "Maximum age").fill("30min");
  await send(form, "Create");
  await page.getByRole("button", { name: checker, exact: true }).click();
  const panel = dialog(checker);
  await panel.getByText("It is not bound yet, so it stops no sessions.").waitFor();
  await button("Bind", panel).click();
  const bind = dialog(`Bind ${checker}`);
  await field(bind, "Resource group").last().click();
  await page.getByRole("option", { name: made.groupName, exact: true }).click();
  await send(bind, "Bind");
  await panel.getByRole("list", { name: "Bound to" }).getByText(`resource group ${made.groupName}`).waitFor();
  await panel.getByText(/It would stop 0 sessions now/).waitFor();
  await look("idle-checker");
  await button("Close", panel).click();
  await look("idle-checkers");
  await page.goto(`/sessions/${made.tried}`);
  await heading(tried);
  const note = page.getByRole("region", { name: "Idle check" });
  await note.getByText(/Stops in \d+ min/).waitFor({ timeout: 120_000 });
  await look("idle-session");
  await page.getByRole("navigation", { name: "Main navigation" }).getByRole("link", { name: "Sessions" }).click();
  await page
    .getByRole("row")
    .filter({ hasText: tried })
    .getByText(/^stops in/)
    .waitFor();
  await look("idle-sessions");
  await page.goto(`/sessions/${made.tried}`);
  await note.getByRole("switch", { name: "Exempt from idle checks" }).click();
  await note.getByText("This session is exempt from idle checks.").waitFor({ timeout: 120_000 });
  await adminPage("Idle checkers");
  await page.getByRole("button", { name: checker, exact: true }).click();
  await button(`Unbind resource group ${made.groupName}`, panel).click();
  await panel.getByText("It is not bound yet, so it stops no sessions.").waitFor();
  await button("Delete", panel).click();
  await button("Delete", dialog(`Delete ${checker}?`)).click();
  await page.getByRole("button", { name: checker, exact: true }).waitFor({ state: "detached" });
}

/** Deletes everything that the test has created, also after a failure. */
async function sweep() {
  const quiet = (query: string, variables: Variables) =>
    admin.ask(query, variables).catch((why) => console.error("sweep:", why.message));
  const { idleCheckers, resourceGroups, sessionGroups } = await admin.ask(
    `query($c: String!, $g: String!, $s: String!) {
    idleCheckers(first: 1, where: { name: $c }) { edges { node { id } } } resourceGroups(first: 1, where: { name: $g }) { edges { node { id } } } sessionGroups(first: 1, where: { name: $s }) { edges { node { id } } } }`,
    { c: checker, g: group, s: together },
  );
  for (const { node } of idleCheckers.edges)
    await quiet("mutation($i: DeleteIdleCheckerInput!) { deleteIdleChecker(input: $i) { id } }", {
      i: { id: node.id },
    });
  for (const { node } of resourceGroups.edges)
    await quiet("mutation($i: DeleteResourceGroupInput!) { deleteResourceGroup(input: $i) { id } }", {
      i: { id: node.id },
    });
  for (const { node } of sessionGroups.edges)
    await quiet("mutation($i: DeleteSessionGroupInput!) { deleteSessionGroup(input: $i) { id } }", {
      i: { id: node.id },
    });
  if (made.agentId) {
    const { node } = await admin.ask(
      "query($id: ID!) { node(id: $id) { ... on Agent { schedulable drainDeadline } } }",
      { id: made.agentId },
    );
    if (node.drainDeadline)
      await quiet("mutation($i: UndrainAgentInput!) { undrainAgent(input: $i) { agent { id } } }", {
        i: { id: made.agentId },
      });
    else if (!node.schedulable)
      await quiet("mutation($i: UpdateAgentInput!) { updateAgent(input: $i) { agent { id } } }", {
        i: { id: made.agentId, schedulable: true },
      });
  }
  for (const id of made.sessions)
    await admin
      .ask("mutation($i: TerminateSessionInput!) { terminateSession(input: $i) { session { id } } }", { i: { id } })
      .catch(() => undefined);
}

await walk(
  stage,
  [
    ["pieces of devices", pieces],
    ["queue", queue],
    ["why it waits", why],
    ["launch", launch],
    ["group settings", settings],
    ["machines", machines],
    ["idle checkers", idle],
  ],
  { sweep },
);
