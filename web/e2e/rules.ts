// Browser test of the admin pages for policies, effective limits, resource groups, roles, presets, registries, volumes,
// the audit log and retention. It needs a running cluster:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/rules.ts
// The credentials must be those of a superadmin. BERTH_SHOTS names a directory for screenshots.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Locator } from "playwright-core";
import type { Variables } from "./account/api.ts";
import { recordSecret } from "./account/api.ts";
import { runSteps, startTest } from "./stage.ts";

const stage = await startTest();
const {
  run,
  page,
  context,
  checkPage,
  admin,
  button,
  dialog,
  field,
  heading,
  listItem,
  pick,
  openMainPage,
  submit,
  table,
} = stage;
const [policy, group, role, project] = ["policy", "group", "role", "project"].map((what) => `rules-${what}-${run}`);
const registry = `rules-${run}`;
const [fittingPreset, impossiblePreset] = [`fits-${run}`, `never-${run}`];
const [ada, eve] = ["ada", "eve"].map((name): { id?: string; email: string; password: string } => ({
  email: `rules-${name}-${run}@example.org`,
  password: recordSecret(`the password of ${name}`, randomUUID()),
}));
const fixtures: Record<string, any> = { since: new Date(Date.now() - 60_000) };

const openPage = async (label: string, title = label) => {
  await stage.openAdminPage(label);
  await heading(title);
};

async function loginAs(who: { email: string; password: string }) {
  await context.clearCookies();
  await page.goto("/login");
  await stage.submitLogin(who);
  await heading("Home");
}

/** Creates the users and the project that the rules apply to. */
async function people() {
  await admin.login(stage.email, stage.password);
  const { viewer } = await admin.graphql("{ viewer { user { id domain { id } } projects { id } } }");
  fixtures.domain = viewer.user.domain.id;
  fixtures.project = (
    await admin.graphql("mutation($i: CreateProjectInput!) { createProject(input: $i) { project { id } } }", {
      i: { name: project, domain: fixtures.domain },
    })
  ).createProject.project.id;
  for (const who of [ada, eve]) {
    const { createUser } = await admin.graphql(
      "mutation($i: CreateUserInput!) { createUser(input: $i) { user { id } } }",
      {
        i: { email: who.email, username: who.email.split("@")[0], password: who.password, domain: fixtures.domain },
      },
    );
    who.id = createUser.user.id;
    await admin.graphql("mutation($i: UpdateUserInput!) { updateUser(input: $i) { user { id } } }", {
      i: { id: who.id, passwordChangeRequired: false, ...(who === eve ? { role: "MONITOR" } : {}) },
    });
  }
  for (const id of [ada.id, viewer.user.id])
    await admin.graphql("mutation($i: AddMembershipInput!) { addMembership(input: $i) { project { id } } }", {
      i: { project: fixtures.project, user: id },
    });
  await loginAs(stage);
  await openMainPage("Admin");
  await page.getByRole("navigation", { name: "Admin pages" }).waitFor();
}

async function policies() {
  await openPage("Policies");
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
  await checkPage("policy-form");
  await submit(form, "Create");
  await page.getByLabel("Filter by name").fill(policy);
  await page.getByText("2 concurrent sessions").waitFor();
  await checkPage("policies");
  await page.getByRole("button", { name: policy, exact: true }).click();
  const panel = dialog(policy);
  await panel.getByText("None that you can see.").waitFor();
  await button("Attach", panel).click();
  const attach = dialog(`Attach ${policy}`);
  await attach.getByRole("radiogroup", { name: "Attach to" }).getByText("Project").click();
  await pick(attach, "Project", project);
  await checkPage("policy-attach");
  await submit(attach, "Attach");
  await listItem(panel, `project ${project}`).waitFor();
  await checkPage("policy");
  // An attached policy cannot be deleted, and the dialog shows the error.
  await button("Delete", panel).click();
  await button("Delete", dialog(`Delete ${policy}?`)).click();
  await dialog(`Delete ${policy}?`).getByRole("alert").waitFor();
  await page.keyboard.press("Escape");
  await dialog(`Delete ${policy}?`).waitFor({ state: "detached" });
  await button("Close", panel).click();
}

/** The effective limits of a member of the project contain the policy. */
async function effectiveLimits() {
  await page.getByRole("radiogroup", { name: "View" }).getByText("Effective limits").click();
  await page.getByText("Nothing selected").waitFor();
  const filter = page.getByRole("region", { name: "Filter" });
  await pick(filter, "User", ada.email);
  await pick(filter, "Project", project);
  const limitsRegion = page.getByRole("region", { name: "Effective limits", exact: true });
  const cpu = limitsRegion.getByRole("row").filter({ hasText: "CPU" }).first();
  await cpu.filter({ hasText: policy }).waitFor();
  assert.match(await cpu.innerText(), /0\s+4\s+4/);
  await limitsRegion.getByRole("row").filter({ hasText: "Session lifetime" }).filter({ hasText: "12 h" }).waitFor();
  await checkPage("what-binds");
}

async function groups() {
  await openPage("Resource groups");
  await button("New group").click();
  const form = dialog("New resource group");
  await field(form, "Name").fill(group);
  await field(form, "Description").fill("for the walk");
  await form.getByLabel("Batch").uncheck();
  await checkPage("group-form");
  await submit(form, "Create");
  const row = table("Resource groups").getByRole("row").filter({ hasText: group });
  await row.getByText("no one yet").waitFor();
  await page.getByRole("button", { name: group, exact: true }).click();
  const panel = dialog(group);
  await button("Grant", panel).click();
  const grant = dialog(`Grant ${group}`);
  await pick(grant, "Project", project);
  await submit(grant, "Grant");
  await listItem(panel.getByRole("list", { name: "Granted to" }), `project ${project}`).waitFor();
  await listItem(panel.getByRole("list", { name: "Projects that can use it" }), project)
    .filter({ hasText: "granted to the project" })
    .waitFor();
  await panel.getByRole("radiogroup", { name: "Who can use it" }).getByText("Users").click();
  await listItem(panel.getByRole("list", { name: "Users who can use it" }), ada.email)
    .filter({ hasText: "granted to the project" })
    .waitFor();
  await checkPage("group");
  await button("Close", panel).click();
  await row.getByText("1 grant").waitFor();
  await checkPage("groups");
  await page.getByRole("radiogroup", { name: "View" }).getByText("Access", { exact: true }).click();
  await table("Available resource groups").waitFor();
  await page.getByRole("radiogroup", { name: "Show groups for" }).getByText("A user").click();
  await pick(page, "User", ada.email);
  await table("Available resource groups")
    .getByRole("row")
    .filter({ hasText: group })
    .filter({ hasText: "granted to the project" })
    .waitFor();
  await checkPage("which-groups");
}

async function roles() {
  await openPage("Roles");
  await button("New role").click();
  const form = dialog("New role");
  await field(form, "Name").fill(role);
  await field(form, "Description").fill("looks after sessions");
  await form.getByLabel("everything on session", { exact: true }).check();
  await form.getByLabel("connect on session", { exact: true }).uncheck();
  await form.getByLabel("read on project", { exact: true }).check();
  await checkPage("role-form");
  await submit(form, "Create");
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
    if (scope === "One object") await checkPage("role-grant");
    await submit(grant, "Grant");
  }
  const grants = panel.getByRole("list", { name: "Granted to" });
  await listItem(grants, `in project ${project}`).waitFor();
  await button(`Revoke from ${ada.email} on ${project}`, panel).click();
  await button("Revoke", dialog("Revoke the role?")).click();
  await listItem(grants, `on ${project}`).waitFor({ state: "detached" });
  await checkPage("role");
  await button("Close", panel).click();
  await checkPage("roles");
}

async function presets() {
  await openPage("Presets");
  for (const [name, cpu] of [
    [fittingPreset, "1"],
    [impossiblePreset, "4096"],
  ]) {
    await button("New preset").click();
    const form = dialog("New preset");
    await field(form, "Name").fill(name);
    await form.getByLabel("Requested resources: CPU").fill(cpu);
    await form.getByLabel("Requested resources: Memory").fill("256 MiB");
    if (name === fittingPreset) {
      await field(form, "Shared memory").fill("128m");
      await checkPage("preset-form");
    }
    await submit(form, "Create");
    await table("Presets").getByRole("row").filter({ hasText: name }).waitFor();
  }
  await table("Presets")
    .getByRole("row")
    .filter({ hasText: impossiblePreset })
    .filter({ hasText: "never possible" })
    .waitFor();
  await checkPage("presets");
  // The launch sheet shows the same state of each preset.
  await page.keyboard.press("l");
  const presetGroup = page.getByRole("radiogroup", { name: "Preset" });
  const fittingRadio = presetGroup.getByRole("radio").filter({ hasText: fittingPreset });
  await fittingRadio.filter({ hasText: /available now|would be pending/ }).waitFor(); // depends on other tests
  const impossibleRadio = presetGroup.getByRole("radio").filter({ hasText: impossiblePreset });
  await impossibleRadio.filter({ hasText: "never possible: " }).waitFor();
  await impossibleRadio.click({ force: true });
  assert.equal(await impossibleRadio.getAttribute("aria-checked"), "false", "an impossible preset can be selected");
  await fittingRadio.click();
  assert.equal(await fittingRadio.getAttribute("aria-checked"), "true");
  await field(page.getByRole("dialog"), "Memory, GiB").waitFor();
  assert.equal(await field(page.getByRole("dialog"), "Memory, GiB").inputValue(), "0.25");
  await checkPage("launch-preset");
  await field(page.getByRole("dialog"), "CPU").fill("2");
  assert.equal(
    await fittingRadio.getAttribute("aria-checked"),
    "false",
    "the preset is still selected after a change of an amount",
  );
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
    const impossible = /never possible/.test(await tile.innerText());
    await preview
      .getByText(impossible ? /^This session could never start/ : /^(Starts now|Would be pending)/)
      .waitFor();
    assert.equal(
      (await tile.getAttribute("aria-disabled")) === "true",
      impossible,
      `the size ${key} is disabled although it is possible, or enabled although it is not`,
    );
  }
  // No machine has that many CPUs.
  await field(sheet, "CPU").fill("100000");
  await preview.getByText("This session could never start").waitFor();
  await checkPage("launch-never");
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "detached" });
}

/** Adds, changes and removes a registry. */
async function registries() {
  await openPage("Images");
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
  await checkPage("registry-form");
  await button("Save", change).click();
  await list
    .getByRole("listitem")
    .filter({ hasText: `${registry}-b` })
    .filter({ hasText: "plain HTTP" })
    .waitFor();
  await button(`Remove ${registry}-b`, list).click();
  await button("Remove", dialog(`Remove the registry ${registry}-b?`)).click();
  await list.getByRole("listitem").filter({ hasText: registry }).waitFor({ state: "detached" });
  await checkPage("images");
}

async function volumes() {
  await openPage("Volumes");
  const first = table("Volumes").getByRole("row").nth(1).getByRole("button").first();
  const name = await first.innerText();
  await first.click();
  const panel = dialog(name);
  await button("Grant", panel).click();
  const grant = dialog(`Grant ${name}`);
  await pick(grant, "Project", project);
  await grant.getByLabel("upload", { exact: true }).check();
  await checkPage("volume-grant");
  await submit(grant, "Grant");
  await listItem(panel, `project ${project}`).filter({ hasText: "mount folders, upload, download" }).waitFor();
  await button(`Edit the access of project ${project}`, panel).click();
  const change = dialog(`Access of project ${project} to ${name}`);
  await change.getByLabel("upload", { exact: true }).uncheck();
  await submit(change, "Save");
  await listItem(panel, `project ${project}`)
    .filter({ hasText: /mount folders, download/ })
    .waitFor();
  await checkPage("volume");
  await button(`Revoke the access of project ${project}`, panel).click();
  await button("Revoke", dialog("Revoke the access?")).click();
  await listItem(panel, `project ${project}`).waitFor({ state: "detached" });
  await button("Close", panel).click();
  await checkPage("volumes");
}

/** The audit log contains all these changes, on the page and in the CSV file. */
async function auditLog() {
  await openPage("Audit log");
  await table("Audit log").waitFor();
  await checkPage("audit");
  const local = new Date(fixtures.since.getTime() - fixtures.since.getTimezoneOffset() * 60_000)
    .toISOString()
    .slice(0, 16);
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
  await checkPage("audit-filter");
  await table("Audit log").getByRole("row").nth(1).getByRole("button").click();
  await page.getByRole("dialog").getByText("grantVolume", { exact: true }).first().waitFor();
  await checkPage("audit-row");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("combobox", { name: "Action", exact: true }).fill("");
  await page.waitForURL((url) => !url.searchParams.has("action"));
  const downloading = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download CSV" }).click();
  const download = await downloading;
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
    assert(csv.includes(action), `the CSV file lacks ${action}`);
  assert(csv.includes("FAILED_PRECONDITION"), "the CSV file lacks the rejected deletion");
}

async function retention() {
  await openPage("Retention");
  const days = page.getByLabel("Retention of Finished tasks in days; 0 means forever");
  const before = await days.inputValue();
  for (const n of [String(Number(before) + 1), before]) {
    await days.fill(n);
    await button("Set the retention of Finished tasks").click();
    await page.getByText(`Finished tasks: retention is now ${n} days.`).waitFor();
  }
  await checkPage("retention");
}

/** A monitor can read every page and change nothing. A user without rights gets "Page not found". */
async function monitorAndUser() {
  await loginAs(eve);
  for (const [path, title, shown] of [
    ["policies", "Policies", policy],
    ["groups", "Resource groups", group],
    ["roles", "Roles", role],
    ["presets", "Presets", fittingPreset],
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
        `a monitor sees the button ${name} at /admin/${path}`,
      );
  }
  await page.goto("/admin/groups");
  await page.getByRole("button", { name: group, exact: true }).click();
  await listItem(dialog(group), `project ${project}`).first().waitFor();
  for (const name of ["Grant", "Edit", "Delete"])
    assert.equal(await button(name, dialog(group)).count(), 0, `a monitor sees the button ${name}`);
  await checkPage("group-monitor");
  await loginAs(ada);
  for (const path of ["policies", "groups", "roles", "presets", "volumes", "audit", "retention"]) {
    await page.goto(`/admin/${path}`);
    await heading("Page not found");
  }
  await checkPage("not-found");
}

/** Deletes everything that the test has created, each with its button. */
async function deleteAll() {
  await loginAs(stage);
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
  for (const name of [fittingPreset, impossiblePreset]) {
    await button(`Delete ${name}`).click();
    await button("Delete", dialog(`Delete ${name}?`)).click();
    await button(`Delete ${name}`).waitFor({ state: "detached" });
  }
}

/** Turns recovery mode on and off. The page of the cluster shows a warning while it is on. */
async function recovery() {
  const setRecovery = (on: boolean) =>
    admin.graphql("mutation($i: SetRecoveryInput!) { setRecovery(input: $i) { recovery { since } } }", {
      i: { on, reason: on ? "a drill" : null },
    });
  const note = page.getByRole("alert").filter({ hasText: "The cluster is in recovery mode." });
  await setRecovery(true);
  try {
    await page.goto("/cluster");
    await note.getByText("Until an administrator turns it off").waitFor();
    await checkPage("recovery");
  } finally {
    await setRecovery(false);
  }
  await note.waitFor({ state: "detached" });
}

/** Removes what no step deletes, and what a failed test has left. */
async function cleanUp() {
  const tryMutation = (query: string, variables: Variables) =>
    admin.graphql(query, variables).catch((error) => console.error("cleanup:", error.message));
  const {
    resourcePolicies,
    resourcePresets,
    roles: all,
    resourceGroups,
  } = await admin.graphql(
    `query($policy: String!, $role: String!, $group: String!) {
    resourcePolicies(first: 1, where: { name: $policy }) { edges { node { id attachments { id } } } } resourcePresets(first: 100) { edges { node { id name } } }
    roles(first: 1, where: { name: $role }) { edges { node { id } } } resourceGroups(first: 1, where: { name: $group }) { edges { node { id } } } }`,
    { policy, role, group },
  );
  for (const { node } of resourcePolicies.edges) {
    for (const a of node.attachments)
      await tryMutation("mutation($i: DetachResourcePolicyInput!) { detachResourcePolicy(input: $i) { id } }", {
        i: { id: a.id },
      });
    await tryMutation("mutation($i: DeleteResourcePolicyInput!) { deleteResourcePolicy(input: $i) { id } }", {
      i: { id: node.id },
    });
  }
  for (const { node: p } of resourcePresets.edges)
    if (p.name === fittingPreset || p.name === impossiblePreset)
      await tryMutation("mutation($i: DeleteResourcePresetInput!) { deleteResourcePreset(input: $i) { id } }", {
        i: { id: p.id },
      });
  for (const { node } of all.edges)
    await tryMutation("mutation($i: DeleteRoleInput!) { deleteRole(input: $i) { id } }", { i: { id: node.id } });
  for (const { node } of resourceGroups.edges)
    await tryMutation("mutation($i: DeleteResourceGroupInput!) { deleteResourceGroup(input: $i) { id } }", {
      i: { id: node.id },
    });
  for (const who of [ada, eve])
    if (who.id)
      await tryMutation("mutation($i: UpdateUserInput!) { updateUser(input: $i) { user { id } } }", {
        i: { id: who.id, status: "INACTIVE" },
      });
  if (fixtures.project)
    await tryMutation("mutation($i: DeleteProjectInput!) { deleteProject(input: $i) { id } }", {
      i: { id: fixtures.project, name: project },
    });
}

await runSteps(
  stage,
  [
    ["create users and a project", people],
    ["create and attach a policy", policies],
    ["show effective limits", effectiveLimits],
    ["create and grant a resource group", groups],
    ["create and grant a role", roles],
    ["create and use presets", presets],
    ["add, change and remove a registry", registries],
    ["compare the sizes with the preview", sizes],
    ["grant permissions on a volume", volumes],
    ["find the changes in the audit log", auditLog],
    ["change the retention", retention],
    ["turn recovery mode on and off", recovery],
    ["use the admin pages as a monitor and as a user", monitorAndUser],
    ["delete all objects", deleteAll],
  ],
  { cleanUp },
);
