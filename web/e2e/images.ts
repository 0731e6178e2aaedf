// Browser test of images: a session is saved and shared, and an administrator tests, scans and limits a registry.
// It needs a running platform with the image minimal and a registry for images of sessions:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/images.ts
// BERTH_SHOTS names a directory for pictures.

import { runSteps, startTest } from "./stage.ts";

const stage = await startTest();
const { run, page, checkPage, admin, button, field, heading, submit } = stage;
const session = `saved-${run}`;
const image = `env-${run}`;

const sheet = page.getByRole("dialog", { name: "Launch a session" });
const entry = (text: string) => page.locator("ul.rows > li").filter({ hasText: text });

async function login() {
  await admin.login(stage.email, stage.password);
  await page.goto("/login");
  await stage.submitLogin(stage);
  await heading("Home");
}

async function launch(name: string, reference: RegExp) {
  await page.keyboard.press("l");
  await sheet.getByRole("radio", { name: reference }).check({ force: true });
  await field(sheet, "CPU").fill("0.1");
  await field(sheet, "Memory, GiB").fill("0.125");
  await field(sheet, "Name").fill(name);
  await button("Launch", sheet).click();
  await heading(name);
  await page.locator('.page-head [data-status="running"]').waitFor({ timeout: 120_000 });
}

/** A session becomes an image. A wrong name is refused at its field. */
async function save() {
  await launch(session, /minimal/);
  await button("Save as image").click();
  const dialog = page.getByRole("dialog", { name: `Save ${session} as an image` });
  await field(dialog, "Image name").fill("Not Allowed");
  await button("Save", dialog).click();
  await dialog
    .getByText(/lower-case letters/)
    .last()
    .waitFor();
  await checkPage("image-save");
  await field(dialog, "Image name").fill(`${image}:2`);
  await field(dialog, "Description").fill("with a tool");
  await button("Save", dialog).click();
  await dialog.getByText("It continues even if you leave this page.").waitFor({ state: "detached", timeout: 120_000 });
  await checkPage("image-saved");
  await dialog.getByRole("link", { name: "My images" }).click();
  await heading("My images");
  await entry(`${image}:2`).getByText("with a tool").waitFor();
  await checkPage("my-images");
}

async function start() {
  await launch(`again-${run}`, new RegExp(`${image}:2`));
}

async function remove() {
  await page.goto("/account/images");
  await button(`Delete ${image}:2`).click();
  const dialog = page.getByRole("dialog", { name: `Delete ${image}:2?` });
  await button("Delete", dialog).click();
  await dialog.getByText(/that use the image/).waitFor();
  await cleanUp();
  await submit(dialog, "Delete");
  await page.getByText(`${image}:2 was deleted.`).waitFor();
  await entry(`${image}:2`).waitFor({ state: "detached" });
}

/** Every check of the registry that serves this platform's images works. */
async function registry() {
  await page.goto("/admin/images");
  const registry = page.getByRole("region", { name: "Registries" }).getByRole("listitem").first();
  await registry.waitFor();
  await checkPage("admin-images");
  await registry
    .getByRole("button", { name: /^(Test|More|Actions)/ })
    .first()
    .click();
  await page.getByText("List of images").first().waitFor();
  await checkPage("registry-test");
  await page.keyboard.press("Escape");
  for (const name of ["Space", "Webhook", "Report", "Edit"]) {
    await registry.getByRole("button", { name: new RegExp(`^${name}`) }).click();
    await page.getByRole("dialog").waitFor();
    await checkPage(`registry-${name.toLowerCase()}`);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
}

/** The list of images finds one by a part of its name, and shows what uses it. */
async function images() {
  const table = page.getByRole("table", { name: "Registered images" });
  await page.getByRole("searchbox", { name: "Filter by name" }).fill("minimal");
  await table.getByRole("row").filter({ hasText: "python:" }).waitFor({ state: "detached" });
  for (const name of ["Details of", "Attached to"]) {
    await table
      .getByRole("button", { name: new RegExp(`^${name} minimal:1`) })
      .first()
      .click();
    await page.getByRole("dialog").waitFor();
    await checkPage(`image-${name.split(" ")[0].toLowerCase()}`);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
}

/** A recipe becomes an image. */
async function build() {
  await page.goto("/account/images");
  await button("Build an image").click();
  await page.getByRole("dialog").waitFor();
  await checkPage("build-form");
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
  for (let tries = 0; sessions.edges.length > 0 && tries < 120; tries++) {
    const { sessions: left } = await admin.graphql(
      "query($w: SessionWhereInput) { sessions(where: $w) { totalCount } }",
      {
        w: { nameContainsFold: run, statusNotIn: ["TERMINATED", "CANCELLED", "ERROR"] },
      },
    );
    if (left.totalCount === 0) return;
    await page.waitForTimeout(500);
  }
}

await runSteps(
  stage,
  [
    ["log in", login],
    ["save a session as an image", save],
    ["start from the image", start],
    ["delete the image", remove],
    ["test a registry", registry],
    ["look at images", images],
    ["build an image", build],
  ],
  { cleanUp },
);
