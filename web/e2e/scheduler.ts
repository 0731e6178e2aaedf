// Browser test of the scheduler's pages: pending reasons and suggestions, the queue of a group, the dry run of the launch
// sheet, settings and shares of a group, cordon and drain, idle checkers. It needs a running cluster with accelerators
// that offer shares:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/scheduler.ts
// The credentials must be those of a superadmin. BERTH_SHOTS names a directory for screenshots.

import assert from "node:assert/strict";
import type { Request } from "playwright-core";
import type { Variables } from "./account/api.ts";
import { runSteps, startTest } from "./stage.ts";

const stage = await startTest();
const { run, page, checkPage, admin, button, choose, dialog, field, heading, pick, submit } = stage;
const [group, checker, pendingSession, laterSession, launchedSession, sessionGroup] = [
  "group",
  "checker",
  "waits",
  "later",
  "tried",
  "together",
].map((what) => `sched-${what}-${run}`);
const fixtures: Record<string, any> = { sessions: [] };

const waitForStatus = (name: string) => page.locator(`.page-head [data-status="${name}"]`).waitFor({ timeout: 60_000 });

const adminPage = async (label: string) => {
  await stage.openMainPage("Admin");
  await stage.openAdminPage(label);
  await heading(label);
};

async function launchSession(name: string, share: string | number, more = {}) {
  const { createSession } = await admin.graphql(
    "mutation($i: CreateSessionInput!) { createSession(input: $i) { session { id } } }",
    {
      i: {
        name,
        image: fixtures.image,
        slots: { cpu: "0.1", mem: "64m", [fixtures.slot]: String(share) },
        resourceGroup: fixtures.group,
        ...more,
      },
    },
  );
  fixtures.sessions.push(createSession.session.id);
  return createSession.session.id;
}

/**
 * Allocates 3/4 of every device, so that a request for 1/2 fits into the sum of the free shares but not on any single
 * device.
 */
async function occupyDevices() {
  await admin.login(stage.email, stage.password);
  const { agents, images, viewer } = await admin.graphql(`{
    agents(first: 50) { edges { node { id name resourceGroup { id name } devices { id capacity occupied } } } }
    images(first: 50, where: { status: ALIVE }) { edges { node { reference } } } viewer { projects { id name } } }`);
  const freeShares = (agent: any) =>
    agent.devices.flatMap((d: any) =>
      Object.keys(d.capacity)
        .filter((slot) => slot.endsWith(".shares"))
        .map((slot) => ({ slot, free: Number(d.capacity[slot]) - Number(d.occupied[slot] ?? 0) })),
    );
  const agent = agents.edges.map((e: any) => e.node).find((a: any) => freeShares(a).length > 1);
  assert(agent, "no agent offers shares of several devices");
  Object.assign(fixtures, {
    agent: agent.name,
    agentId: agent.id,
    group: agent.resourceGroup.id,
    groupName: agent.resourceGroup.name,
    slot: freeShares(agent)[0].slot,
    project: viewer.projects[0].name,
  });
  fixtures.image = (
    images.edges.find((e: any) => e.node.reference.includes("minimal")) ?? images.edges[0]
  ).node.reference;
  for (const [i] of freeShares(agent)
    .filter((c: any) => c.slot === fixtures.slot)
    .entries())
    await launchSession(`sched-holds-${i}-${run}`, 0.75);
  for (let tries = 0; ; tries++) {
    const { sessions } = await admin.graphql(
      "query($ids: [ID!]!) { sessions: nodes(ids: $ids) { ... on Session { status } } }",
      { ids: fixtures.sessions },
    );
    if (sessions.every((s: any) => s.status === "RUNNING")) break;
    assert(tries < 240, `timeout: not all sessions run: ${JSON.stringify(sessions)}`);
    await new Promise((done) => setTimeout(done, 500));
  }
  fixtures.waits = await launchSession(pendingSession, 0.5);
  fixtures.later = await launchSession(laterSession, 0.5);
  await page.goto("/login");
  await stage.submitLogin(stage);
  await heading("Home");
}

async function queue() {
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  await heading("Queue");
  await choose(page, "Resource group", fixtures.groupName);
  const rows = page.getByRole("table", { name: "Queue" }).getByRole("row");
  await rows.filter({ hasText: pendingSession }).waitFor();
  await rows.filter({ hasText: laterSession }).waitFor();
  const [first, second] = [
    await rows.filter({ hasText: pendingSession }).innerText(),
    await rows.filter({ hasText: laterSession }).innerText(),
  ];
  assert(Number.parseInt(first, 10) < Number.parseInt(second, 10), `${first} is not before ${second}`);
  await checkPage("queue");
}

/** The page explains why the session is pending. A click on a suggestion starts it. */
async function pendingReason() {
  await page.getByRole("link", { name: pendingSession }).click();
  await heading(pendingSession);
  await waitForStatus("pending");
  const panel = page.getByRole("region", { name: "Why it is pending" });
  await panel
    .getByText(/not on one device/)
    .first()
    .waitFor();
  await panel.getByRole("list", { name: "Machines left after each check" }).waitFor();
  const suggestion = panel
    .getByRole("list", { name: "Ways to start now" })
    .getByRole("listitem")
    .filter({ hasText: /^With 0\.2/ })
    .first();
  await suggestion.waitFor({ timeout: 60_000 });
  await checkPage("why");
  await suggestion.getByRole("button").click();
  await waitForStatus("running");
  await page.goto(`/sessions/${fixtures.later}`);
  await heading(laterSession);
  await page.getByRole("region", { name: "Why it is pending" }).waitFor();
  await page.getByText("The terminal opens when the session runs").waitFor(); // this part of the page is rendered last
  await checkPage("why-later");
}

/** The launch sheet runs a dry run as the user types, and shows whether the session would start. */
async function launch() {
  const requests: string[] = [];
  const record = (request: Request) => requests.push(request.postData() ?? "");
  page.on("request", record);
  await page.keyboard.press("l");
  const sheet = page.getByRole("dialog", { name: "Launch a session" });
  await sheet
    .getByRole("radiogroup", { name: "Image" })
    .getByRole("radio")
    .filter({ hasText: fixtures.image.split("/").at(-1) })
    .first()
    .click();
  await field(sheet, "CPU").fill("0.1");
  await field(sheet, "Memory, GiB").fill("0.0625");
  await sheet.getByRole("button", { name: "0.5", exact: true }).click();
  const preview = sheet.locator(".preview");
  await preview.getByText(/^Would be pending/).waitFor();
  page.off("request", record);
  // There was no dry run before an image was selected.
  assert.deepEqual(
    requests.filter((body) => body.includes("query DryRun") && body.includes('"image":""')),
    [],
  );
  await checkPage("launch-waits");
  await preview.getByRole("button", { name: /0\.2/ }).first().click();
  await preview.getByText(`Starts now on ${fixtures.agent}`).waitFor();
  await sheet.getByText("Schedule and placement").click();
  await field(sheet, "Time limit").fill("soon");
  await sheet.getByText("Enter a time such as 30min, 12h or 2d, or leave empty.").waitFor({ state: "detached" });
  await field(sheet, "Time limit").fill("2h");
  await pick(sheet, "Start after", pendingSession);
  await preview.getByText(/^Would be pending/).waitFor();
  await checkPage("launch-when");
  await button(`Remove ${pendingSession}`, sheet).click();
  await button("New session group", sheet).click();
  const form = dialog("New session group");
  await field(form, "Name").fill(sessionGroup);
  await submit(form, "Create");
  await field(sheet, "Name").fill(launchedSession);
  await preview.getByText(`Starts now on ${fixtures.agent}`).waitFor();
  await checkPage("launch-starts");
  await button("Launch", sheet).click();
  await heading(launchedSession);
  await waitForStatus("running");
  fixtures.tried = new URL(page.url()).pathname.split("/").at(-1);
  fixtures.sessions.push(fixtures.tried);
  await page.getByRole("tab", { name: "Config" }).click();
  await page.getByText(/^2 h, until /).waitFor();
  await checkPage("session-asked");
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
  await checkPage("group-scheduling");
  await submit(form, "Create");
  await page.getByRole("button", { name: group, exact: true }).click();
  const panel = dialog(group);
  await panel.getByText("2 d, ignored after 28 d").waitFor();
  await panel.getByText("12 h", { exact: true }).waitFor();
  await button("Set a weight", panel).click();
  const weightDialog = dialog("Set a weight");
  await pick(weightDialog, "Project", fixtures.project);
  await field(weightDialog, "Weight").fill("3");
  await checkPage("group-weight");
  await submit(weightDialog, "Save");
  await panel.getByRole("list", { name: "Weights" }).getByText(`project ${fixtures.project}`).waitFor();
  await checkPage("group-shares");
  await panel.getByRole("button", { name: `Remove the weight of project ${fixtures.project}` }).click();
  await panel.getByRole("list", { name: "Weights" }).waitFor({ state: "detached" });
  await button("Close", panel).click();
  // The group that is in use shows the usage in its shares.
  await page.getByRole("button", { name: fixtures.groupName, exact: true }).click();
  await dialog(fixtures.groupName)
    .getByRole("table", { name: "Current shares" })
    .getByRole("row")
    .filter({ hasText: stage.email })
    .waitFor();
  await checkPage("group-standing");
  await button("Close", dialog(fixtures.groupName)).click();
  await page.getByRole("button", { name: group, exact: true }).click();
  await button("Delete", panel).click();
  await button("Delete", dialog(`Delete ${group}?`)).click();
  await page.getByRole("button", { name: group, exact: true }).waitFor({ state: "detached" });
}

async function machines() {
  await adminPage("Agents");
  await button(`Cordon ${fixtures.agent}`).click();
  const cordonDialog = dialog(`Cordon ${fixtures.agent}`);
  await field(cordonDialog, "Reason").fill("new memory");
  await submit(cordonDialog, "Cordon");
  const row = page.getByRole("table", { name: "Agents" }).getByRole("row").filter({ hasText: fixtures.agent });
  await row.getByText("cordoned: new memory").waitFor();
  await button(`Drain ${fixtures.agent}`).click();
  const drain = dialog(`Drain ${fixtures.agent}`);
  await field(drain, "Time until the deadline").fill("2h");
  await checkPage("drain-form");
  await submit(drain, "Drain");
  await row.getByText(/draining: \d+ sessions left, 1 h 59 min|2 h/).waitFor();
  await checkPage("agents");
  await page.getByRole("navigation", { name: "Main navigation" }).getByRole("link", { name: "Cluster" }).click();
  await page
    .locator(`[data-agent="${fixtures.agent}"]`)
    .getByText(/^draining: /)
    .waitFor();
  await checkPage("cluster-drain");
  await page.goto(`/sessions/${fixtures.tried}`);
  await page
    .getByRole("region", { name: "Drain" })
    .getByText(/this session restarts on another machine in/)
    .waitFor();
  await checkPage("drain-session");
  await adminPage("Agents");
  await button(`Cancel drain of ${fixtures.agent}`).click();
  await button(`Cordon ${fixtures.agent}`).waitFor();
}

async function idle() {
  await adminPage("Idle checkers");
  await button("New checker").click();
  const form = dialog("New idle checker");
  await field(form, "Name").fill(checker);
  await choose(form, "Criterion", "Low utilization");
  await form.getByLabel("Slot 1", { exact: true }).fill("cpu");
  await form.getByText(/It would stop \d+ sessions? now/).waitFor();
  await checkPage("idle-form");
  await choose(form, "Criterion", "Age");
  await field(form, "Maximum age").fill("30min");
  await submit(form, "Create");
  await page.getByRole("button", { name: checker, exact: true }).click();
  const panel = dialog(checker);
  await panel.getByText("It is not bound yet, so it stops no sessions.").waitFor();
  await button("Bind", panel).click();
  const bind = dialog(`Bind ${checker}`);
  await field(bind, "Resource group").last().click();
  await page.getByRole("option", { name: fixtures.groupName, exact: true }).click();
  await submit(bind, "Bind");
  await panel.getByRole("list", { name: "Bound to" }).getByText(`resource group ${fixtures.groupName}`).waitFor();
  await panel.getByText(/It would stop 0 sessions now/).waitFor();
  await checkPage("idle-checker");
  await button("Close", panel).click();
  await checkPage("idle-checkers");
  await page.goto(`/sessions/${fixtures.tried}`);
  await heading(launchedSession);
  const note = page.getByRole("region", { name: "Idle check" });
  await note.getByText(/Stops in \d+ min/).waitFor({ timeout: 120_000 });
  await checkPage("idle-session");
  await page.getByRole("navigation", { name: "Main navigation" }).getByRole("link", { name: "Sessions" }).click();
  await page
    .getByRole("row")
    .filter({ hasText: launchedSession })
    .getByText(/^stops in/)
    .waitFor();
  await checkPage("idle-sessions");
  await page.goto(`/sessions/${fixtures.tried}`);
  await note.getByRole("switch", { name: "Exempt from idle checks" }).click();
  await note.getByText("This session is exempt from idle checks.").waitFor({ timeout: 120_000 });
  await adminPage("Idle checkers");
  await page.getByRole("button", { name: checker, exact: true }).click();
  await button(`Unbind resource group ${fixtures.groupName}`, panel).click();
  await panel.getByText("It is not bound yet, so it stops no sessions.").waitFor();
  await button("Delete", panel).click();
  await button("Delete", dialog(`Delete ${checker}?`)).click();
  await page.getByRole("button", { name: checker, exact: true }).waitFor({ state: "detached" });
}

/** Deletes everything that the test has created, also after a failure. */
async function cleanUp() {
  const tryMutation = (query: string, variables: Variables) =>
    admin.graphql(query, variables).catch((error) => console.error("cleanup:", error.message));
  const { idleCheckers, resourceGroups, sessionGroups } = await admin.graphql(
    `query($c: String!, $g: String!, $s: String!) {
    idleCheckers(first: 1, where: { name: $c }) { edges { node { id } } } resourceGroups(first: 1, where: { name: $g }) { edges { node { id } } } sessionGroups(first: 1, where: { name: $s }) { edges { node { id } } } }`,
    { c: checker, g: group, s: sessionGroup },
  );
  for (const { node } of idleCheckers.edges)
    await tryMutation("mutation($i: DeleteIdleCheckerInput!) { deleteIdleChecker(input: $i) { id } }", {
      i: { id: node.id },
    });
  for (const { node } of resourceGroups.edges)
    await tryMutation("mutation($i: DeleteResourceGroupInput!) { deleteResourceGroup(input: $i) { id } }", {
      i: { id: node.id },
    });
  for (const { node } of sessionGroups.edges)
    await tryMutation("mutation($i: DeleteSessionGroupInput!) { deleteSessionGroup(input: $i) { id } }", {
      i: { id: node.id },
    });
  if (fixtures.agentId) {
    const { node } = await admin.graphql(
      "query($id: ID!) { node(id: $id) { ... on Agent { schedulable drainDeadline } } }",
      { id: fixtures.agentId },
    );
    if (node.drainDeadline)
      await tryMutation("mutation($i: UndrainAgentInput!) { undrainAgent(input: $i) { agent { id } } }", {
        i: { id: fixtures.agentId },
      });
    else if (!node.schedulable)
      await tryMutation("mutation($i: UpdateAgentInput!) { updateAgent(input: $i) { agent { id } } }", {
        i: { id: fixtures.agentId, schedulable: true },
      });
  }
  for (const id of fixtures.sessions)
    await admin
      .graphql("mutation($i: TerminateSessionInput!) { terminateSession(input: $i) { session { id } } }", { i: { id } })
      .catch(() => undefined);
}

await runSteps(
  stage,
  [
    ["allocate shares of all devices", occupyDevices],
    ["show the queue", queue],
    ["show why a session is pending", pendingReason],
    ["launch a session after a dry run", launch],
    ["change the settings of a group", settings],
    ["cordon and drain a machine", machines],
    ["create an idle checker", idle],
  ],
  { cleanUp },
);
