// Browser test of the admin pages for policies, effective limits, resource groups, roles, presets, registries, volumes,
// the audit log and retention. It needs a running cluster:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/rules.ts
// The credentials must be those of a superadmin. BERTH_SHOTS names a directory for screenshots.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Locator } from "playwright-core";
import type { Variables } from "./account/api.ts";
import { secret } from "./account/api.ts";
import { begin, walk } from "./stage.ts";

const stage = await begin();
const { run, page, context, look, admin, button, dialog, field, heading, listed, pick, place, send, table } = stage;
const [policy, group, role, project] = ["policy", "group", "role", "project"].map((what) => `rules-${what}-${run}`);
const registry = `rules-${run}`;
const [fits, never] = [`fits-${run}`, `never-${run}`];
const [ada, eve] = ["ada", "eve"].map((name): { id?: string; email: string; password: string } => ({
  email: `rules-${name}-${run}@example.org`,
  password: secret(`the password of ${name}`, randomUUID()),
}));
const made: Record<string, any> = { since: new Date(Date.now() - 60_000) };

const goto = async (label: string, title = label) => {
  await stage.adminPage(label);
  await heading(title);
};

async function as(who: { email: string; password: string }) {
  await context.clearCookies();
  await page.goto("/login");
  await stage.enter(who);
  await heading("Home");
}

/** Creates the users and the project that the rules apply to. */
async function people() {
  await admin.login(stage.email, stage.password);
  const { viewer } = await admin.ask("{ viewer { user { id domain { id } } projects { id } } }");
  made.domain = viewer.user.domain.id;
  made.project = (
    await admin.ask("mutation($i: CreateProjectInput!) { createProject(input: $i) { project { id } } }", {
      i: { name: project, domain: made.domain },
    })
  ).createProject.project.id;
  for (const who of [ada, eve]) {
    const { createUser } = await admin.ask("mutation($i: CreateUserInput!) { createUser(input: $i) { user { id } } }", {
      i: { email: who.email, username: who.email.split("@")[0], password: who.password, domain: made.domain },
    });
    who.id = createUser.user.id;
    await admin.ask("mutation($i: UpdateUserInput!) { updateUser(input: $i) { user { id } } }", {
      i: { id: who.id, passwordChangeRequired: false, ...(who === eve ? { role: "MONITOR" } : {}) },
    });
  }
  for (const id of [ada.id, viewer.user.id])
    await admin.ask("mutation($i: AddMembershipInput!) { addMembership(input: $i) { project { id } } }", {
      i: { project: made.project, user: id },
    });
  await as(stage);
  await place("Admin");
  await page.getByRole("navigation", { name: "Admin pages" }).waitFor();
}

async function policies() {
  await goto("Policies");
  await button("New policy").click();
  const form = dialog("New policy");
  await field(form, "Name").fill(policy);
  await form.getByLabel("Resources in use at once: CPU").fill("many");
  await form.getByText("Enter a number, or leave empty.").waitFor();
  await form.getByLabel("Resources in use at once: CPU").fill("4");
  await form.getByLabel("Resources in use at once: Memory").fill("8");
  await form.getByRole("radiogroup", { name: "All other resources" }).getByText("zero").click();
  await field(form, "Concurrent sessions").fill("2");
  await field(form, "Session lifetime").fill("12h");
  await look("policy-form");
  await send(form, "Create");
  await page.getByLabel("Filter by name").fill(policy);
  await page.getByText("2 concurrent sessions").waitFor();
  await look("policies");
  await page.getByRole("button", { name: policy, exact: true }).click();
  const panel = dialog(policy);
  await panel.getByText("None that you can see.").waitFor();
  await button("Attach", panel).click();
  const attach = dialog(`Attach ${policy}`);
  await attach.getByRole("radiogroup", { name: "Attach to" }).getByText("Project").click();
  await pick(attach, "Project", project);
  await look("policy-attach");
  await send(attach, "Attach");
  await listed(panel, `project ${project}`).waitFor();
  await look("policy");
  // An attached policy cannot be deleted, and the dialog shows the error.
  await button("Delete", panel).click();
  await button("Delete", dialog(`Delete ${policy}?`)).click();
  await dialog(`Delete ${policy}?`).getByRole("alert").waitFor();
  await page.keyboard.press("Escape");
  await dialog(`Delete ${policy}?`).waitFor({ state: "detached" });
  await button("Close", panel).click();
}

/** The effective limits of a member of the project contain the policy. */
async function binding() {
  await page.getByRole("radiogroup", { name: "View" }).getByText("Effective limits").click();
  await page.getByText("Nothing selected").waitFor();
  const whose = page.getByRole("region", { name: "Filter" });
  await pick(whose, "User", ada.email);
  await pick(whose, "Project", project);
  const binds = page.getByRole("region", { name: "Effective limits", exact: true });
  const cpu = binds.getByRole("row").filter({ hasText: "CPU" }).first();
  await cpu.filter({ hasText: policy }).waitFor();
  assert.match(await cpu.innerText(), /0\s+4\s+4/);
  await binds.getByRole("row").filter({ hasText: "Session lifetime" }).filter({ hasText: "12 h" }).waitFor();
  await look("what-binds");
}

async function groups() {
  await goto("Resource groups");
  await button("New group").click();
  const form = dialog("New resource group");
  await field(form, "Name").fill(group);
  await field(form, "Description").fill("for the walk");
  await form.getByLabel("Batch").uncheck();
  await look("group-form");
  await send(form, "Create");
  const row = table("Resource groups").getByRole("row").filter({ hasText: group });
  await row.getByText("no one yet").waitFor();
  await page.getByRole("button", { name: group, exact: true }).click();
  const panel = dialog(group);
  await button("Grant", panel).click();
  const grant = dialog(`Grant ${group}`);
  await pick(grant, "Project", project);
  await send(grant, "Grant");
  await listed(panel.getByRole("list", { name: "Granted to" }), `project ${project}`).waitFor();
  await listed(panel.getByRole("list", { name: "Projects that can use it" }), project)
    .filter({ hasText: "granted to the project" })
    .waitFor();
  await panel.getByRole("radiogroup", { name: "Who can use it" }).getByText("Users").click();
  await listed(panel.getByRole("list", { name: "Users who can use it" }), ada.email)
    .filter({ hasText: "granted to the project" })
    .waitFor();
  await look("group");
  await button("Close", panel).click();
  await row.getByText("1 grant").waitFor();
  await look("groups");
  await page.getByRole("radiogroup", { name: "View" }).getByText("Access", { exact: true }).click();
  await table("Available resource groups").waitFor();
  await page.getByRole("radiogroup", { name: "Show groups for" }).getByText("A user").click();
  await pick(page, "User", ada.email);
  await table("Available resource groups")
    .getByRole("row")
    .filter({ hasText: group })
    .filter({ hasText: "granted to the project" })
    .waitFor();
  await look("which-groups");
}

async function roles() {
  await goto("Roles");
  await button("New role").click();
  const form = dialog("New role");
  await field(form, "Name").fill(role);
  await field(form, "Description").fill("looks after sessions");
  await form.getByLabel("everything on session", { exact: true }).check();
  await form.getByLabel("connect on session", { exact: true }).uncheck();
  await form.getByLabel("read on project", { exact: true }).check();
  await look("role-form");
  await send(form, "Create");
  await page.getByLabel("Filter by name").fill(role);
  await table("Roles")
    .getByRole("row")
    .filter({ hasText: role })
    .filter({ hasText: "read, create, update, delete" })
    .waitFor();
  await page.getByRole("button", { name: role, exact: true }).click();
  const panel = dialog(role);
  for (const [scope, choose] of [
    ["One project", (grant: Locator) => pick(grant, "Project", project)],
    [
      "One object",
      async (grant: Locator) => {
        await field(grant, "Type").click();
        await page.getByRole("option", { name: "project", exact: true }).click();
        await pick(grant, "Object", project);
      },
    ],
  ] as const) {
    await button("Grant", panel).click();
    const grant = dialog(`Grant ${role}`);
    await pick(grant, "Grant to", ada.email);
    await grant.getByRole("radiogroup", { name: "Scope" }).getByText(scope, { exact: true }).click();
    await choose(grant);
    if (scope === "One object") await look("role-grant");
    await send(grant, "Grant");
  }
  const held = panel.getByRole("list", { name: "Granted to" });
  await listed(held, `in project ${project}`).waitFor();
  await button(`Revoke from ${ada.email} on ${project}`, panel).click();
  await button("Revoke", dialog("Revoke the role?")).click();
  await listed(held, `on ${project}`).waitFor({ state: "detached" });
  await look("role");
  await button("Close", panel).click();
  await look("roles");
}

async function presets() {
  await goto("Presets");
  for (const [name, cpu] of [
    [fits, "1"],
    [never, "4096"],
  ]) {
    await button("New preset").click();
    const form = dialog("New preset");
    await field(form, "Name").fill(name);
    await form.getByLabel("Requested resources: CPU").fill(cpu);
    await form.getByLabel("Requested resources: Memory").fill("256 MiB");
    if (name === fits) {
      await field(form, "Shared memory").fill("128m");
      await look("preset-form");
    }
    await send(form, "Create");
    await table("Presets").getByRole("row").filter({ hasText: name }).waitFor();
  }
  await table("Presets").getByRole("row").filter({ hasText: never }).filter({ hasText: "never possible" }).waitFor();
  await look("presets");
  // The launch sheet shows the same state of each preset.
  await page.keyboard.press("l");
  const offered = page.getByRole("radiogroup", { name: "Preset" });
  const fitting = offered.getByRole("radio").filter({ hasText: fits });
  await fitting.filter({ hasText: /available now|would be pending/ }).waitFor(); // depends on other tests
  const not = offered.getByRole("radio").filter({ hasText: never });
  await not.filter({ hasText: "never possible: " }).waitFor();
  await not.click({ force: true });
  assert.equal(await not.getAttribute("aria-checked"), "false", "what never fits is not chosen");
  await fitting.click();
  assert.equal(await fitting.getAttribute("aria-checked"), "true");
  await field(page.getByRole("dialog"), "Memory, GiB").waitFor();
  assert.equal(await field(page.getByRole("dialog"), "Memory, GiB").inputValue(), "0.25");
  await look("launch-preset");
  await field(page.getByRole("dialog"), "CPU").fill("2");
  assert.equal(await fitting.getAttribute("aria-checked"), "false", "an amount by hand is no preset");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

/** The sizes in the launch sheet show the same result as its preview. */
async function sizes() {
  await page.keyboard.press("l");
  const sheet = dialog("Launch a session");
  const preview = sheet.locator(".preview");
  for (const [key, cpu, memory] of [
    ["S", "1", "1"],
    ["M", "2", "4"],
    ["L", "4", "8"],
  ]) {
    const tile = sheet
      .getByRole("radiogroup", { name: "Size" })
      .getByRole("radio")
      .filter({ hasText: `${key} · ${cpu} CPU · ${memory} GiB` });
    await tile.filter({ hasText: /available now|would be pending|never possible/ }).waitFor();
    await field(sheet, "CPU").fill(cpu);
    await field(sheet, "Memory, GiB").fill(memory);
    const never = /never possible/.test(await tile.innerText());
    await preview.getByText(never ? /^This session could never start/ : /^(Starts now|Would be pending)/).waitFor();
    assert.equal((await tile.getAttribute("aria-disabled")) === "true", never, `the tile ${key} can be chosen`);
  }
  // No machine has that many CPUs.
  await field(sheet, "CPU").fill("100000");
  await preview.getByText("This session could never start").waitFor();
  await look("launch-never");
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "detached" });
}

/** Adds, changes and removes a registry. */
async function registries() {
  await goto("Images");
  const list = page.getByRole("region", { name: "Registries" });
  await button("Add a registry", list).click();
  const add = dialog("Add a registry");
  await field(add, "Name").fill(registry);
  await field(add, "Host and port").fill(`${registry}.example.org`);
  await button("Add", add).click();
  await button(`Edit ${registry}`, list).click();
  const change = dialog(`Edit ${registry}`);
  await field(change, "Name").fill(`${registry}-b`);
  await change.getByLabel("Use plain HTTP").check();
  await look("registry-form");
  await button("Save", change).click();
  await list
    .getByRole("listitem")
    .filter({ hasText: `${registry}-b` })
    .filter({ hasText: "plain HTTP" })
    .waitFor();
  await button(`Remove ${registry}-b`, list).click();
  await button("Remove", dialog(`Remove the registry ${registry}-b?`)).click();
  await list.getByRole("listitem").filter({ hasText: registry }).waitFor({ state: "detached" });
  await look("images");
}

async function volumes() {
  await goto("Volumes");
  const first = table("Volumes").getByRole("row").nth(1).getByRole("button").first();
  const name = await first.innerText();
  await first.click();
  const panel = dialog(name);
  await button("Grant", panel).click();
  const grant = dialog(`Grant ${name}`);
  await pick(grant, "Project", project);
  await grant.getByLabel("upload", { exact: true }).check();
  await look("volume-grant");
  await send(grant, "Grant");
  await listed(panel, `project ${project}`).filter({ hasText: "mount folders, upload, download" }).waitFor();
  await button(`Edit the access of project ${project}`, panel).click();
  const change = dialog(`Access of project ${project} to ${name}`);
  await change.getByLabel("upload", { exact: true }).uncheck();
  await send(change, "Save");
  await listed(panel, `project ${project}`)
    .filter({ hasText: /mount folders, download/ })
    .waitFor();
  await look("volume");
  await button(`Revoke the access of project ${project}`, panel).click();
  await button("Revoke", dialog("Revoke the access?")).click();
  await listed(panel, `project ${project}`).waitFor({ state: "detached" });
  await button("Close", panel).click();
  await look("volumes");
}

/** The audit log contains all these changes, on the page and in the CSV file. */
async function trail() {
  await goto("Audit log");
  await table("Audit log").waitFor();
  await look("audit");
  const local = new Date(made.since.getTime() - made.since.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  await page.getByLabel("From", { exact: true }).fill(local);
  for (const action of [
    "createResourcePolicy",
    "attachResourcePolicy",
    "deleteResourcePolicy",
    "createResourceGroup",
    "grantResourceGroup",
    "createRole",
    "grantRole",
    "createResourcePreset",
    "grantVolume",
  ]) {
    await page.getByRole("combobox", { name: "Action", exact: true }).fill(action);
    await page.keyboard.press("Escape");
    await page.waitForURL((url) => url.searchParams.get("action") === action);
    await table("Audit log")
      .getByRole("row")
      .filter({ hasText: action })
      .filter({ hasText: stage.email })
      .first()
      .waitFor();
  }
  await page.getByText("A CSV file cannot be filtered by: Action.").waitFor();
  await look("audit-filter");
  await table("Audit log").getByRole("row").nth(1).getByRole("button").click();
  await page.getByRole("dialog").getByText("grantVolume", { exact: true }).first().waitFor();
  await look("audit-row");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("combobox", { name: "Action", exact: true }).fill("");
  await page.waitForURL((url) => !url.searchParams.has("action"));
  const arriving = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download CSV" }).click();
  const download = await arriving;
  const parts = [];
  for await (const part of await download.createReadStream()) parts.push(part);
  const csv = Buffer.concat(parts).toString();
  for (const action of [
    "createResourcePolicy",
    "attachResourcePolicy",
    "grantResourceGroup",
    "grantRole",
    "createResourcePreset",
    "grantVolume",
  ])
    assert(csv.includes(action), `${action} is not in the file`);
  assert(csv.includes("FAILED_PRECONDITION"), "the refused deletion is not in the file");
}

async function retention() {
  await goto("Retention");
  const days = page.getByLabel("Retention of Finished tasks in days; 0 means forever");
  const before = await days.inputValue();
  for (const n of [String(Number(before) + 1), before]) {
    await days.fill(n);
    await button("Set the retention of Finished tasks").click();
    await page.getByText(`Finished tasks: retention is now ${n} days.`).waitFor();
  }
  await look("retention");
}

/** A monitor can read every page and change nothing. A user without rights gets "Page not found". */
async function others() {
  await as(eve);
  for (const [path, title, shown] of [
    ["policies", "Policies", policy],
    ["groups", "Resource groups", group],
    ["roles", "Roles", role],
    ["presets", "Presets", fits],
    ["volumes", "Volumes", "everyone"],
    ["audit", "Audit log", "grantRole"],
    ["retention", "Retention", "Audit log"],
  ]) {
    await page.goto(`/admin/${path}`);
    await heading(title);
    await page
      .locator("table")
      .getByText(shown, { exact: shown === "Audit log" })
      .first()
      .waitFor();
    for (const name of [/^New /, /^Edit/, /^Delete/, /^Set$/])
      assert.equal(
        await page.locator(".content").getByRole("button", { name }).count(),
        0,
        `${name} at /admin/${path} of a monitor`,
      );
  }
  await page.goto("/admin/groups");
  await page.getByRole("button", { name: group, exact: true }).click();
  await listed(dialog(group), `project ${project}`).first().waitFor();
  for (const name of ["Grant", "Edit", "Delete"])
    assert.equal(await button(name, dialog(group)).count(), 0, `${name} for a monitor`);
  await look("group-monitor");
  await as(ada);
  for (const path of ["policies", "groups", "roles", "presets", "volumes", "audit", "retention"]) {
    await page.goto(`/admin/${path}`);
    await heading("Page not found");
  }
  await look("not-found");
}

/** Deletes everything that the test has created, each with its button. */
async function tidy() {
  await as(stage);
  await page.goto("/admin/policies");
  await page.getByLabel("Filter by name").fill(policy);
  await page.getByRole("button", { name: policy, exact: true }).click();
  await button(`Detach ${policy} from project ${project}`, dialog(policy)).click();
  await button("Detach", dialog("Detach the policy?")).click();
  await dialog(policy).getByText("None that you can see.").waitFor();
  for (const [path, name] of [
    ["policies", policy],
    ["roles", role],
    ["groups", group],
  ]) {
    if (path !== "policies") {
      await page.goto(`/admin/${path}`);
      await page.getByRole("button", { name, exact: true }).click();
    }
    await button("Delete", dialog(name)).click();
    await button("Delete", dialog(`Delete ${name}?`)).click();
    await dialog(`Delete ${name}?`).waitFor({ state: "detached" });
    await page.getByRole("button", { name, exact: true }).waitFor({ state: "detached" });
  }
  await page.goto("/admin/presets");
  for (const name of [fits, never]) {
    await button(`Delete ${name}`).click();
    await button("Delete", dialog(`Delete ${name}?`)).click();
    await button(`Delete ${name}`).waitFor({ state: "detached" });
  }
}

/** Turns recovery mode on and off. The page of the cluster shows a warning while it is on. */
async function recovery() {
  const turn = (on: boolean) =>
    admin.ask("mutation($i: SetRecoveryInput!) { setRecovery(input: $i) { recovery { since } } }", {
      i: { on, reason: on ? "a drill" : null },
    });
  const note = page.getByRole("alert").filter({ hasText: "The cluster is in recovery mode." });
  await turn(true);
  try {
    await page.goto("/cluster");
    await note.getByText("Until an administrator turns it off").waitFor();
    await look("recovery");
  } finally {
    await turn(false);
  }
  await note.waitFor({ state: "detached" });
}

/** Removes what no step deletes, and what a failed test has left. */
async function sweep() {
  const quiet = (query: string, variables: Variables) =>
    admin.ask(query, variables).catch((why) => console.error("sweep:", why.message));
  const {
    resourcePolicies,
    resourcePresets,
    roles: all,
    resourceGroups,
  } = await admin.ask(
    `query($policy: String!, $role: String!, $group: String!) {
    resourcePolicies(first: 1, where: { name: $policy }) { edges { node { id attachments { id } } } } resourcePresets(first: 100) { edges { node { id name } } }
    roles(first: 1, where: { name: $role }) { edges { node { id } } } resourceGroups(first: 1, where: { name: $group }) { edges { node { id } } } }`,
    { policy, role, group },
  );
  for (const { node } of resourcePolicies.edges) {
    for (const a of node.attachments)
      await quiet("mutation($i: DetachResourcePolicyInput!) { detachResourcePolicy(input: $i) { id } }", {
        i: { id: a.id },
      });
    await quiet("mutation($i: DeleteResourcePolicyInput!) { deleteResourcePolicy(input: $i) { id } }", {
      i: { id: node.id },
    });
  }
  for (const { node: p } of resourcePresets.edges)
    if (p.name === fits || p.name === never)
      await quiet("mutation($i: DeleteResourcePresetInput!) { deleteResourcePreset(input: $i) { id } }", {
        i: { id: p.id },
      });
  for (const { node } of all.edges)
    await quiet("mutation($i: DeleteRoleInput!) { deleteRole(input: $i) { id } }", { i: { id: node.id } });
  for (const { node } of resourceGroups.edges)
    await quiet("mutation($i: DeleteResourceGroupInput!) { deleteResourceGroup(input: $i) { id } }", {
      i: { id: node.id },
    });
  for (const who of [ada, eve])
    if (who.id)
      await quiet("mutation($i: UpdateUserInput!) { updateUser(input: $i) { user { id } } }", {
        i: { id: who.id, status: "INACTIVE" },
      });
  if (made.project)
    await quiet("mutation($i: DeleteProjectInput!) { deleteProject(input: $i) { id } }", {
      i: { id: made.project, name: project },
    });
}

await walk(
  stage,
  [
    ["people", people],
    ["policies", policies],
    ["what binds whom", binding],
    ["resource groups", groups],
    ["roles", roles],
    ["presets", presets],
    ["registries", registries],
    ["sizes", sizes],
    ["volumes", volumes],
    ["audit log", trail],
    ["retention", retention],
    ["recovery mode", recovery],
    ["others", others],
    ["tidy", tidy],
  ],
  { sweep },
);
