// Browser test of the admin pages for domains, projects and users. It needs a running cluster:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/people.ts
// The credentials must be those of a superadmin. BERTH_SHOTS names a directory for screenshots.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Api, recordSecret } from "./account/api.ts";
import { runSteps, startTest } from "./stage.ts";

const stage = await startTest();
const { run, url } = stage;
const domain = `lab-${run}`;
const project = `vision-${run}`;
interface Person {
  name: string;
  email: string;
  password: string;
  /** The password that an administrator set. */
  initialPassword?: string;
  /** Objects that later steps need, such as the page or the folder of the person. */
  [more: string]: any;
}

const person = (name: string): Person => ({
  name,
  email: `${name}-${run}@example.org`,
  password: `${name} ${run} chose this`,
});
const [ada, bo, cy] = ["ada", "bo", "cy"].map(person);
const api = await stage.admin.login(stage.email, stage.password);

/** Adds actions on the admin pages to a browser. */
const withAdminPages = (browser: Awaited<ReturnType<typeof stage.openBrowser>>) => ({
  ...browser,
  panel: (name: string) => browser.page.getByRole("dialog", { name, exact: true }),
  async openPage(name: string) {
    await browser.openAdminPage(name);
    await browser.heading(name);
  },
  async login(email: string, password: string) {
    await browser.page.goto("/login");
    await browser.submitLogin({ email, password });
  },
  /** Logs in as an imported user, who must choose a new password first. */
  async firstLogin({ email, initialPassword = "", password }: Person) {
    await this.login(email, initialPassword);
    await browser.heading("Choose a new password");
    await browser.page.getByLabel("New password", { exact: false }).first().fill(password);
    await browser.page.getByLabel("Repeat new password").fill(password);
    await browser.button("Change password").click();
    await browser.heading("Home");
  },
});
const openBrowser = async () => withAdminPages(await stage.openBrowser());

const superadmin = withAdminPages(stage);
const { page } = superadmin;

async function createDomain() {
  await superadmin.login(stage.email, stage.password);
  await superadmin.heading("Home");
  await page.goto("/admin");
  await superadmin.heading("Users");
  await superadmin.openPage("Domains");
  await superadmin.checkPage("domains");
  await page.getByRole("button", { name: "New domain" }).click();
  const dialog = superadmin.panel("New domain");
  await dialog.getByLabel("Name").fill("no/name");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.locator('[aria-invalid="true"]').waitFor();
  await dialog.getByLabel("Name").fill(domain);
  await dialog.getByLabel("Description").fill("The lab on the second floor");
  await dialog.getByRole("button", { name: "Create" }).click();
  const panel = superadmin.panel(domain);
  await panel.getByLabel("Minimum password length").fill("1");
  await panel.getByRole("button", { name: "Save" }).click();
  await panel.locator('[aria-invalid="true"]').waitFor();
  await panel.getByLabel("Minimum password length").fill("12");
  await panel.getByLabel("Who can sign up").click();
  await page.getByRole("option", { name: "People with an invitation" }).click();
  await panel.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  await superadmin.checkPage("domain");
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
}

async function createProject() {
  await superadmin.openPage("Projects");
  await page.getByRole("button", { name: "New project" }).click();
  const dialog = superadmin.panel("New project");
  await dialog.getByLabel("Name").fill(project);
  await superadmin.pick(dialog, "Domain", domain);
  await superadmin.checkPage("new-project");
  await dialog.getByRole("button", { name: "Create" }).click();
  await superadmin.panel(project).getByText("No members yet.").waitFor();
  await page.keyboard.press("Escape");
}

async function importUsers() {
  await superadmin.openPage("Users");
  await page.getByRole("button", { name: "Import CSV" }).click();
  await superadmin.heading("Import users");
  await superadmin.pick(page, "Domain", domain);
  const csv = [
    "email,full_name,projects",
    ...[ada, bo, cy].map((p) => `${p.email},${p.name} of ${run},${project}`),
    `dan-${run}@example.org,Dan,no-such-project`,
    "",
  ].join("\n");
  await page.locator("[data-csv]").setInputFiles({ name: "lab.csv", mimeType: "text/csv", buffer: Buffer.from(csv) });
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByText("3 to create").waitFor();
  await superadmin.row(`dan-${run}`).getByText("no-such-project").waitFor();
  assert.equal(await page.locator('.grid [data-status="would_create"]').count(), 3);
  await superadmin.checkPage("import-preview");
  await page.getByRole("button", { name: "Import 3 users" }).click();
  await page.getByText("3 created").waitFor();
  await superadmin.checkPage("import-done");
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download the passwords" }).click();
  const lines = readFileSync(await (await downloading).path(), "utf8")
    .trim()
    .split("\n")
    .slice(1);
  assert.equal(lines.length, 3);
  for (const line of lines) {
    const [email, password] = line.split(",");
    [ada, bo, cy].find((p) => p.email === email)!.initialPassword = recordSecret(
      `the first password of ${email}`,
      password,
    );
  }
  await page.getByRole("button", { name: "Show users" }).click();
  await superadmin.heading("Users");
  await superadmin.pick(page, "Domain", domain);
  await page.waitForFunction(() => document.querySelectorAll(".grid tbody tr").length === 3);
  await superadmin.row(ada.email).waitFor();
  await superadmin.checkPage("users");
}

async function grantProjectAdmin() {
  await superadmin.openPage("Projects");
  await page.getByLabel("Filter by name").fill(project);
  await page.getByRole("button", { name: project }).click();
  const panel = superadmin.panel(project);
  const administers = `${ada.email} is an administrator of ${project}`;
  await panel.getByRole("checkbox", { name: administers }).click();
  await panel.getByRole("checkbox", { name: administers, checked: true }).waitFor();
  await superadmin.checkPage("project");
  await panel.getByRole("tab", { name: "Limits" }).click();
  await panel.getByText("No policy is attached.").waitFor();
  await superadmin.checkPage("project-limits");
  await panel.getByRole("tab", { name: "Volumes" }).click();
  await panel.getByRole("heading", { name: "Allowed volumes" }).waitFor();
  await superadmin.checkPage("project-volumes");
  await page.keyboard.press("Escape");
  await page.waitForFunction((name: string) => document.activeElement?.textContent === name, project);
}

/** A project administrator sees only the page of projects; a member sees no admin page. */
async function projectAdminPages() {
  const projectAdmin = await openBrowser();
  await projectAdmin.firstLogin(ada);
  await projectAdmin.page
    .getByRole("navigation", { name: "Main navigation" })
    .getByRole("link", { name: "Admin" })
    .click();
  await projectAdmin.heading("Projects");
  assert.deepEqual(
    await projectAdmin.page.getByRole("navigation", { name: "Admin pages" }).getByRole("link").allTextContents(),
    ["Projects"],
  );
  await projectAdmin.page.getByRole("button", { name: project }).click();
  const panel = projectAdmin.panel(project);
  await panel.getByRole("button", { name: `Remove ${bo.email} from ${project}` }).waitFor();
  assert.equal(
    await panel.getByRole("button", { name: "Purge" }).count(),
    0,
    "a project administrator sees the Purge button",
  );
  await projectAdmin.checkPage("lead-project");
  for (const path of ["users", "domains", "providers", "tasks", "audit"]) {
    await projectAdmin.page.goto(`/admin/${path}`);
    await projectAdmin.heading("Page not found");
  }
  await projectAdmin.checkPage("lead-nothing");

  const member = await openBrowser();
  await member.firstLogin(bo);
  assert.equal(
    await member.page.getByRole("navigation", { name: "Main navigation" }).getByRole("link", { name: "Admin" }).count(),
    0,
  );
  await member.page.goto("/admin/projects");
  await member.heading("Page not found");
  bo.page = member.page;
  const memberApi = await new Api(url).login(bo.email, bo.password);
  bo.folder = (
    await memberApi.graphql(
      "mutation($input: CreateVfolderInput!) { createVfolder(input: $input) { vfolder { id } } }",
      {
        input: { name: `notes-${run}` },
      },
    )
  ).createVfolder.vfolder.id;
}

async function deactivate() {
  await superadmin.openPage("Users");
  await page.getByLabel("Filter by e-mail or name").fill(bo.email);
  await page.getByRole("button", { name: bo.email }).click();
  const panel = superadmin.panel(bo.email);
  await superadmin.checkPage("user");
  for (const [tab, ready] of [
    ["Projects", project],
    ["Limits", "Effective limits"],
    ["Volumes", "Allowed volumes"],
    ["Logins and keys", "Current logins"],
    ["Activity", "Recent activity"],
  ]) {
    await panel.getByRole("tab", { name: tab }).click();
    await panel.getByText(ready).first().waitFor();
    await superadmin.checkPage(`user-${tab.toLowerCase().replaceAll(" ", "-")}`);
  }
  await panel.getByRole("button", { name: "Deactivate" }).click();
  const confirmation = superadmin.panel(`Deactivate ${bo.email}?`);
  await superadmin.checkPage("deactivate");
  await confirmation.getByRole("button", { name: "Deactivate" }).click();
  await panel.locator('[data-status="inactive"]').waitFor();
  await bo.page.waitForURL("**/login?**");
  await assert.rejects(new Api(url).login(bo.email, bo.password), "an inactive user can log in");
}

async function purge() {
  const panel = superadmin.panel(bo.email);
  await panel.getByRole("button", { name: "Purge" }).click();
  const confirmation = superadmin.panel(`Purge ${bo.email}`);
  await confirmation.getByLabel(`Type ${bo.email} to confirm`).fill(bo.email);
  await confirmation.getByRole("button", { name: "Purge permanently" }).click();
  // The user owns a folder, so the purge requires a new owner.
  await confirmation.locator('[aria-invalid="true"]').waitFor();
  await superadmin.checkPage("purge");
  await superadmin.pick(confirmation, "New owner of the folders", cy.email);
  await confirmation.getByRole("button", { name: "Purge permanently" }).click();
  await confirmation.locator('[data-status="done"]').waitFor({ timeout: 120_000 });
  await superadmin.checkPage("purged");
  await confirmation.getByRole("button", { name: "Done" }).click();
  await page.getByText("No user matches").waitFor();
  const { node } = await api.graphql("query($id: ID!) { node(id: $id) { ... on Vfolder { owner { email } } } }", {
    id: bo.folder,
  });
  assert.equal(node.owner.email, cy.email, "the folder has another owner");
  await superadmin.openPage("Tasks");
  await superadmin.row(bo.email).locator('[data-status="done"]').waitFor();
  await superadmin.checkPage("tasks");
}

async function invitationsAndProviders() {
  await superadmin.openPage("Invitations");
  await page.getByRole("button", { name: "New invitation" }).click();
  const dialog = superadmin.panel("New invitation");
  await dialog.getByLabel("E-mail").fill(`eve-${run}@example.org`);
  await superadmin.pick(dialog, "Domain", domain);
  await dialog.getByRole("button", { name: "Invite" }).click();
  await dialog.locator(".cli code").getByText("/signup#invitation=").waitFor();
  await superadmin.checkPage("invited");
  await dialog.getByRole("button", { name: "Done" }).click();
  await superadmin
    .row(`eve-${run}`)
    .getByRole("button", { name: /Revoke/ })
    .click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await superadmin.row(`eve-${run}`).locator('[data-status="revoked"]').waitFor();
  await superadmin.checkPage("invitations");
  await superadmin.openPage("Identity providers");
  await page.getByRole("button", { name: "New provider" }).click();
  await superadmin.panel("New identity provider").getByLabel("Issuer").fill("login.example.org");
  await superadmin.checkPage("new-provider");
  await page.keyboard.press("Escape");
}

/** A domain with users cannot be purged. */
async function refusedPurge() {
  await superadmin.openPage("Domains");
  await page.getByLabel("Filter by name").fill(domain);
  await page.getByRole("button", { name: domain }).click();
  await superadmin.panel(domain).getByRole("button", { name: "Purge" }).click();
  const confirmation = superadmin.panel(`Purge ${domain}?`);
  await confirmation.getByLabel(`Type ${domain} to confirm`).fill(domain);
  await confirmation.getByRole("button", { name: "Purge permanently" }).click();
  await confirmation.getByRole("alert").getByText("2 users").waitFor();
  await superadmin.checkPage("purge-refused");
  await page.keyboard.press("Escape");
}

/** Deletes the users and the project of the test, as far as they exist. */
async function cleanUp() {
  const found = (
    await api.graphql(
      "query($name: String!) { domains(where: { name: $name }) { edges { node { id users(first: 50, where: { status: ACTIVE }) { edges { node { id } } } projects(first: 50) { edges { node { id name } } } } } } }",
      { name: domain },
    )
  ).domains.edges[0]?.node;
  if (!found) return;
  for (const { node } of found.users.edges) {
    await api.graphql("mutation($input: UpdateUserInput!) { updateUser(input: $input) { user { id } } }", {
      input: { id: node.id, status: "INACTIVE" },
    });
    await api.graphql("mutation($input: DeleteUserInput!) { deleteUser(input: $input) { task { id } } }", {
      input: { id: node.id, deleteFolders: true },
    });
  }
  for (const { node } of found.projects.edges)
    await api.graphql("mutation($input: DeleteProjectInput!) { deleteProject(input: $input) { id } }", { input: node });
}

await runSteps(
  stage,
  [
    ["create a domain", createDomain],
    ["create a project", createProject],
    ["import users", importUsers],
    ["make a member project administrator", grantProjectAdmin],
    ["show the pages of a project administrator and a member", projectAdminPages],
    ["deactivate a user", deactivate],
    ["purge a user", purge],
    ["create an invitation and a provider", invitationsAndProviders],
    ["refuse to purge a domain with users", refusedPurge],
    ["delete all objects", cleanUp],
  ],
  { cleanUp: async (failed) => failed && cleanUp() },
);
