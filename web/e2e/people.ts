// Browser test of the admin pages for domains, projects and users. It needs a running cluster:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/people.ts
// The credentials must be those of a superadmin. BERTH_SHOTS names a directory for screenshots.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Api, secret } from "./account/api.ts";
import { begin, walk } from "./stage.ts";

const stage = await begin();
const { run, url } = stage;
const domain = `lab-${run}`;
const project = `vision-${run}`;
interface Person {
  name: string;
  email: string;
  password: string;
  /** The password that an administrator set. */
  given?: string;
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
const seated = (who: Awaited<ReturnType<typeof stage.sit>>) => ({
  ...who,
  panel: (name: string) => who.page.getByRole("dialog", { name, exact: true }),
  async go(name: string) {
    await who.adminPage(name);
    await who.heading(name);
  },
  async login(email: string, password: string) {
    await who.page.goto("/login");
    await who.enter({ email, password });
  },
  /** Logs in as an imported user, who must choose a new password first. */
  async first({ email, given = "", password }: Person) {
    await this.login(email, given);
    await who.heading("Choose a new password");
    await who.page.getByLabel("New password", { exact: false }).first().fill(password);
    await who.page.getByLabel("Repeat new password").fill(password);
    await who.button("Change password").click();
    await who.heading("Home");
  },
});
const sit = async () => seated(await stage.sit());

const boss = seated(stage);
const { page } = boss;

async function makeDomain() {
  await boss.login(stage.email, stage.password);
  await boss.heading("Home");
  await page.goto("/admin");
  await boss.heading("Users");
  await boss.go("Domains");
  await boss.look("domains");
  await page.getByRole("button", { name: "New domain" }).click();
  const dialog = boss.panel("New domain");
  await dialog.getByLabel("Name").fill("no/name");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.locator('[aria-invalid="true"]').waitFor();
  await dialog.getByLabel("Name").fill(domain);
  await dialog.getByLabel("Description").fill("The lab on the second floor");
  await dialog.getByRole("button", { name: "Create" }).click();
  const panel = boss.panel(domain);
  await panel.getByLabel("Minimum password length").fill("1");
  await panel.getByRole("button", { name: "Save" }).click();
  await panel.locator('[aria-invalid="true"]').waitFor();
  await panel.getByLabel("Minimum password length").fill("12");
  await panel.getByLabel("Who can sign up").click();
  await page.getByRole("option", { name: "People with an invitation" }).click();
  await panel.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  await boss.look("domain");
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
}

async function makeProject() {
  await boss.go("Projects");
  await page.getByRole("button", { name: "New project" }).click();
  const dialog = boss.panel("New project");
  await dialog.getByLabel("Name").fill(project);
  await boss.pick(dialog, "Domain", domain);
  await boss.look("new-project");
  await dialog.getByRole("button", { name: "Create" }).click();
  await boss.panel(project).getByText("No members yet.").waitFor();
  await page.keyboard.press("Escape");
}

async function importUsers() {
  await boss.go("Users");
  await page.getByRole("button", { name: "Import CSV" }).click();
  await boss.heading("Import users");
  await boss.pick(page, "Domain", domain);
  const csv = [
    "email,full_name,projects",
    ...[ada, bo, cy].map((p) => `${p.email},${p.name} of ${run},${project}`),
    `dan-${run}@example.org,Dan,no-such-project`,
    "",
  ].join("\n");
  await page.locator("[data-csv]").setInputFiles({ name: "lab.csv", mimeType: "text/csv", buffer: Buffer.from(csv) });
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByText("3 to create").waitFor();
  await boss.row(`dan-${run}`).getByText("no-such-project").waitFor();
  assert.equal(await page.locator('.grid [data-status="would_create"]').count(), 3);
  await boss.look("import-preview");
  await page.getByRole("button", { name: "Import 3 users" }).click();
  await page.getByText("3 created").waitFor();
  await boss.look("import-done");
  const arriving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download the passwords" }).click();
  const lines = readFileSync(await (await arriving).path(), "utf8")
    .trim()
    .split("\n")
    .slice(1);
  assert.equal(lines.length, 3);
  for (const line of lines) {
    const [email, password] = line.split(",");
    [ada, bo, cy].find((p) => p.email === email)!.given = secret(`the first password of ${email}`, password);
  }
  await page.getByRole("button", { name: "Show users" }).click();
  await boss.heading("Users");
  await boss.pick(page, "Domain", domain);
  await page.waitForFunction(() => document.querySelectorAll(".grid tbody tr").length === 3);
  await boss.row(ada.email).waitFor();
  await boss.look("users");
}

async function makeLead() {
  await boss.go("Projects");
  await page.getByLabel("Filter by name").fill(project);
  await page.getByRole("button", { name: project }).click();
  const panel = boss.panel(project);
  const administers = `${ada.email} is an administrator of ${project}`;
  await panel.getByRole("checkbox", { name: administers }).click();
  await panel.getByRole("checkbox", { name: administers, checked: true }).waitFor();
  await boss.look("project");
  await panel.getByRole("tab", { name: "Limits" }).click();
  await panel.getByText("No policy is attached.").waitFor();
  await boss.look("project-limits");
  await panel.getByRole("tab", { name: "Volumes" }).click();
  await panel.getByRole("heading", { name: "Allowed volumes" }).waitFor();
  await boss.look("project-volumes");
  await page.keyboard.press("Escape");
  await page.waitForFunction((name: string) => document.activeElement?.textContent === name, project);
}

/** A project administrator sees only the page of projects; a member sees no admin page. */
async function leadSees() {
  const lead = await sit();
  await lead.first(ada);
  await lead.page.getByRole("navigation", { name: "Main navigation" }).getByRole("link", { name: "Admin" }).click();
  await lead.heading("Projects");
  assert.deepEqual(
    await lead.page.getByRole("navigation", { name: "Admin pages" }).getByRole("link").allTextContents(),
    ["Projects"],
  );
  await lead.page.getByRole("button", { name: project }).click();
  const panel = lead.panel(project);
  await panel.getByRole("button", { name: `Remove ${bo.email} from ${project}` }).waitFor();
  assert.equal(await panel.getByRole("button", { name: "Purge" }).count(), 0, "a project admin purges nothing");
  await lead.look("lead-project");
  for (const path of ["users", "domains", "providers", "tasks", "audit"]) {
    await lead.page.goto(`/admin/${path}`);
    await lead.heading("Page not found");
  }
  await lead.look("lead-nothing");

  const member = await sit();
  await member.first(bo);
  assert.equal(
    await member.page.getByRole("navigation", { name: "Main navigation" }).getByRole("link", { name: "Admin" }).count(),
    0,
  );
  await member.page.goto("/admin/projects");
  await member.heading("Page not found");
  bo.page = member.page;
  const own = await new Api(url).login(bo.email, bo.password);
  bo.folder = (
    await own.ask("mutation($input: CreateVfolderInput!) { createVfolder(input: $input) { vfolder { id } } }", {
      input: { name: `notes-${run}` },
    })
  ).createVfolder.vfolder.id;
}

async function deactivate() {
  await boss.go("Users");
  await page.getByLabel("Filter by e-mail or name").fill(bo.email);
  await page.getByRole("button", { name: bo.email }).click();
  const panel = boss.panel(bo.email);
  await boss.look("user");
  for (const [tab, ready] of [
    ["Projects", project],
    ["Limits", "Effective limits"],
    ["Volumes", "Allowed volumes"],
    ["Logins and keys", "Current logins"],
    ["Activity", "Recent activity"],
  ]) {
    await panel.getByRole("tab", { name: tab }).click();
    await panel.getByText(ready).first().waitFor();
    await boss.look(`user-${tab.toLowerCase().replaceAll(" ", "-")}`);
  }
  await panel.getByRole("button", { name: "Deactivate" }).click();
  const asked = boss.panel(`Deactivate ${bo.email}?`);
  await boss.look("deactivate");
  await asked.getByRole("button", { name: "Deactivate" }).click();
  await panel.locator('[data-status="inactive"]').waitFor();
  await bo.page.waitForURL("**/login?**");
  await assert.rejects(new Api(url).login(bo.email, bo.password), "an inactive user does not log in");
}

async function purge() {
  const panel = boss.panel(bo.email);
  await panel.getByRole("button", { name: "Purge" }).click();
  const asked = boss.panel(`Purge ${bo.email}`);
  await asked.getByLabel(`Type ${bo.email} to confirm`).fill(bo.email);
  await asked.getByRole("button", { name: "Purge permanently" }).click();
  // The user owns a folder, so the purge requires a new owner.
  await asked.locator('[aria-invalid="true"]').waitFor();
  await boss.look("purge");
  await boss.pick(asked, "New owner of the folders", cy.email);
  await asked.getByRole("button", { name: "Purge permanently" }).click();
  await asked.locator('[data-status="done"]').waitFor({ timeout: 120_000 });
  await boss.look("purged");
  await asked.getByRole("button", { name: "Done" }).click();
  await page.getByText("No user matches").waitFor();
  const { node } = await api.ask("query($id: ID!) { node(id: $id) { ... on Vfolder { owner { email } } } }", {
    id: bo.folder,
  });
  assert.equal(node.owner.email, cy.email, "the folder is handed over");
  await boss.go("Tasks");
  await boss.row(bo.email).locator('[data-status="done"]').waitFor();
  await boss.look("tasks");
}

async function invite() {
  await boss.go("Invitations");
  await page.getByRole("button", { name: "New invitation" }).click();
  const dialog = boss.panel("New invitation");
  await dialog.getByLabel("E-mail").fill(`eve-${run}@example.org`);
  await boss.pick(dialog, "Domain", domain);
  await dialog.getByRole("button", { name: "Invite" }).click();
  await dialog.locator(".cli code").getByText("/signup#invitation=").waitFor();
  await boss.look("invited");
  await dialog.getByRole("button", { name: "Done" }).click();
  await boss
    .row(`eve-${run}`)
    .getByRole("button", { name: /Revoke/ })
    .click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await boss.row(`eve-${run}`).locator('[data-status="revoked"]').waitFor();
  await boss.look("invitations");
  await boss.go("Identity providers");
  await page.getByRole("button", { name: "New provider" }).click();
  await boss.panel("New identity provider").getByLabel("Issuer").fill("login.example.org");
  await boss.look("new-provider");
  await page.keyboard.press("Escape");
}

/** A domain with users cannot be purged. */
async function refused() {
  await boss.go("Domains");
  await page.getByLabel("Filter by name").fill(domain);
  await page.getByRole("button", { name: domain }).click();
  await boss.panel(domain).getByRole("button", { name: "Purge" }).click();
  const asked = boss.panel(`Purge ${domain}?`);
  await asked.getByLabel(`Type ${domain} to confirm`).fill(domain);
  await asked.getByRole("button", { name: "Purge permanently" }).click();
  await asked.getByRole("alert").getByText("2 users").waitFor();
  await boss.look("purge-refused");
  await page.keyboard.press("Escape");
}

/** Deletes the users and the project of the test, as far as they exist. */
async function sweep() {
  const found = (
    await api.ask(
      "query($name: String!) { domains(where: { name: $name }) { edges { node { id users(first: 50, where: { status: ACTIVE }) { edges { node { id } } } projects(first: 50) { edges { node { id name } } } } } } }",
      { name: domain },
    )
  ).domains.edges[0]?.node;
  if (!found) return;
  for (const { node } of found.users.edges) {
    await api.ask("mutation($input: UpdateUserInput!) { updateUser(input: $input) { user { id } } }", {
      input: { id: node.id, status: "INACTIVE" },
    });
    await api.ask("mutation($input: DeleteUserInput!) { deleteUser(input: $input) { task { id } } }", {
      input: { id: node.id, deleteFolders: true },
    });
  }
  for (const { node } of found.projects.edges)
    await api.ask("mutation($input: DeleteProjectInput!) { deleteProject(input: $input) { id } }", { input: node });
}

await walk(
  stage,
  [
    ["domain", makeDomain],
    ["project", makeProject],
    ["import", importUsers],
    ["project admin", makeLead],
    ["what they see", leadSees],
    ["deactivate", deactivate],
    ["purge", purge],
    ["invitation, provider", invite],
    ["refused", refused],
    ["sweep", sweep],
  ],
  { sweep: async (failed) => failed && sweep() },
);
