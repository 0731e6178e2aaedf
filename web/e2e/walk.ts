// Browser test of the pages that every user needs. It needs a running cluster:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/walk.ts
// BERTH_SHOTS names a directory for screenshots, BERTH_IMAGE the image of the session.

import assert from "node:assert/strict";
import type { Locator, Request } from "playwright-core";
import type { Variables } from "./account/api.ts";
import { runSteps, startTest } from "./stage.ts";
import { lookAtStatistics } from "./statistics.ts";

const stage = await startTest();
const { run, page, context, checkPage, heading, openMainPage } = stage;
const folder = `walk-${run}`;
const session = `walk-${run}`;
let clicks = 0;

const countClick = async (locator: Locator) => {
  clicks++;
  await locator.click();
};

/** Calls the API from within the page, with the login of the page. */
const callInPage = (query: string, variables?: Variables): Promise<any> =>
  page.evaluate(
    async ([q, v]) => {
      const response = await fetch("/graphql", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Berth-CSRF": "1" },
        body: JSON.stringify({ query: q, variables: v }),
      });
      const { data, errors } = await response.json();
      if (errors) throw new Error(JSON.stringify(errors));
      return data;
    },
    [query, variables] as const,
  );

/** Calls the API with the login of the page but from outside of it, so that it works while the page is offline. */
async function callOutsidePage(query: string, variables: Variables) {
  const response = await context.request.post("/graphql", {
    headers: { "X-Berth-CSRF": "1" },
    data: { query, variables },
  });
  const { data, errors } = await response.json();
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}

async function login() {
  await page.goto("/cluster");
  await heading("Log in");
  await checkPage("login");
  await page.getByLabel("E-mail").fill(stage.email);
  await page.locator('input[name="password"]').fill("wrong-password");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("alert").getByText("Incorrect e-mail or password.").waitFor();
  await page.locator('input[name="password"]').fill(stage.password);
  await page.getByRole("button", { name: "Log in" }).click();
  await heading("Cluster");
  await page.locator(".live.live").waitFor();
  await openMainPage("Home");
  await heading("Home");
  await checkPage("home");
}

async function data() {
  await openMainPage("Data");
  await page.getByRole("button", { name: "New folder" }).click();
  await page.getByLabel("Name", { exact: true }).fill("../x");
  await page.getByText("This name is not allowed.").waitFor();
  await page.getByLabel("Name", { exact: true }).fill(folder);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await heading(new RegExp(folder));
  const big = Buffer.alloc(3 << 20, "berth\n");
  await page.locator("[data-upload]").setInputFiles([
    { name: "hello.txt", mimeType: "text/plain", buffer: Buffer.from(`hello ${run}\n`) },
    { name: "big.bin", mimeType: "application/octet-stream", buffer: big },
  ]);
  await page.getByText("2 of 2 files").waitFor();
  await page.getByRole("cell", { name: "hello.txt", exact: true }).waitFor();
  await page.getByRole("cell", { name: "3 MiB", exact: true }).waitFor();
  await checkPage("folder");
  await page.getByRole("button", { name: "big.bin", exact: true }).click();
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download big.bin" }).click();
  const download = await downloading;
  if (!process.env.BERTH_MOCK) {
    const parts = [];
    for await (const part of await download.createReadStream()) parts.push(part);
    assert(Buffer.concat(parts).equals(big), "the downloaded file differs from the uploaded one");
  }
  await openMainPage("Data");
  await page.getByRole("link", { name: folder }).waitFor();
  await checkPage("data");
}

/** Shows the content of files without running it, and edits a text file. A concurrent change is not overwritten. */
async function previews() {
  if (process.env.BERTH_MOCK) return;
  await page.getByRole("link", { name: folder }).click();
  await heading(new RegExp(folder));
  const hostile = "<img src=x onerror=run()>.svg";
  await page.locator("[data-upload]").setInputFiles([
    {
      name: hostile,
      mimeType: "image/svg+xml",
      buffer: Buffer.from(
        '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><script>top.ran = 1</script></svg>',
      ),
    },
    { name: "one.pdf", mimeType: "application/pdf", buffer: onePage("Hello") },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("first") },
  ]);
  const details = page.locator(".details");
  const openPreview = async (name: string, text: string) => {
    await page.getByRole("button", { name, exact: true }).click();
    await details.getByText(text).first().waitFor();
  };
  await openPreview(hostile, "30 × 20");
  await openPreview("one.pdf", "Page 1 of 1");
  await page.waitForFunction(() => {
    const canvas = document.querySelector("canvas");
    const { data } = canvas?.width
      ? canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height)
      : { data: [] };
    return data.some((v, i) => i % 4 === 0 && v < 100 && data[i + 3] > 0); // a dark pixel
  });
  assert.equal(
    await page.evaluate(() => (window as { ran?: unknown }).ran),
    undefined,
    "the page has run a script of a file",
  );
  await openPreview("notes.txt", "first");
  await page.getByRole("button", { name: "Edit" }).click();
  const editor = page.getByRole("dialog", { name: "Edit notes.txt" });
  await editor.getByRole("textbox").fill("mine");
  await replaceFile("notes.txt", "theirs");
  await editor.getByRole("button", { name: "Save" }).click();
  await editor.getByText("Someone changed the file").waitFor();
  await checkPage("conflict");
  await editor.getByRole("button", { name: "Load the current contents and discard mine" }).click();
  await editor.getByRole("textbox").fill("theirs and mine");
  await editor.getByRole("button", { name: "Save" }).click();
  await details.getByText("theirs and mine").waitFor();
}

/** Returns a PDF with one page. */
function onePage(text: string) {
  const content = `BT /F1 36 Tf 72 700 Td (${text}) Tj ET`;
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
  ];
  let file = "%PDF-1.4\n";
  const at = objects.map((o, i) => {
    const from = file.length;
    file += `${i + 1} 0 obj\n${o}\nendobj\n`;
    return from;
  });
  const table = at.map((n) => `${String(n).padStart(10, "0")} 00000 n \n`).join("");
  return Buffer.from(
    `${file}xref\n0 6\n0000000000 65535 f \n${table}trailer << /Size 6 /Root 1 0 R >>\nstartxref\n${file.length}\n%%EOF`,
  );
}

/** Replaces a file of the folder as another client does while the page is open. */
async function replaceFile(path: string, text: string) {
  const { vfolders } = await callOutsidePage(
    "query($name: String!) { vfolders(first: 1, where: { name: $name }) { edges { node { id } } } }",
    { name: folder },
  );
  const created = await callOutsidePage(
    "mutation($input: CreateUploadInput!) { createUpload(input: $input) { uploads { url ticket } } }",
    { input: { vfolder: vfolders.edges[0].node.id, files: [{ path, size: text.length }] } },
  );
  const [{ url, ticket }] = created.createUpload.uploads;
  const headers = { Authorization: `Bearer ${ticket}`, "Tus-Resumable": "1.0.0", "X-Berth-CSRF": "1" };
  const upload = await context.request.post(url, { headers: { ...headers, "Upload-Length": String(text.length) } });
  assert(upload.ok(), await upload.text());
  const response = await context.request.patch(new URL(upload.headers().location, upload.url()).href, {
    headers: { ...headers, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream" },
    data: text,
  });
  assert(response.ok(), await response.text());
}

/**
 * A colleague is invited to read, accepts, gets write permission, and is removed. Each page updates without a reload.
 */
async function sharing() {
  if (process.env.BERTH_MOCK) return;
  const email = `colleague-${run}@berth.local`;
  const password = `Walk-with-me-${run}-9`;
  const { viewer } = await callInPage("{ viewer { user { domain { id } } } }");
  await callInPage("mutation($input: CreateUserInput!) { createUser(input: $input) { user { id } } }", {
    input: { email, password, domain: viewer.user.domain.id },
  });
  const other = await stage.openBrowser();
  try {
    const colleague = other.page;
    await colleague.goto("/data");
    await other.submitLogin({ email, password });
    await other.heading("Data");

    await page.getByRole("button", { name: `Share ${folder}` }).click();
    const dialog = page.getByRole("dialog", { name: `Share ${folder}` });
    await dialog.getByLabel("E-mail addresses").fill(`${email}, nobody`);
    await dialog.getByRole("button", { name: "Invite 2" }).click();
    await dialog.getByRole("alert").getByText("is not an e-mail address").waitFor();
    await dialog.getByText("invited", { exact: true }).waitFor();
    await checkPage("share");

    await colleague.getByLabel("1 invitation").waitFor();
    await other.checkPage("invitations");
    await colleague.getByRole("button", { name: `Accept ${folder}` }).click();
    await dialog.getByText("invited", { exact: true }).waitFor({ state: "detached" });
    await colleague.getByRole("link", { name: folder }).click();
    await colleague.getByText("you can read.").waitFor();
    await colleague.getByRole("button", { name: "hello.txt", exact: true }).click();
    await colleague.getByText(`hello ${run}`).waitFor();
    assert.equal(
      await colleague.getByRole("button", { name: "Upload files" }).count(),
      0,
      "a user with read permission sees the upload button",
    );
    await other.checkPage("shared-folder");

    await dialog.getByRole("combobox", { name: `Permission of ${email}` }).click();
    await page.getByRole("option", { name: "read and write", exact: true }).click();
    await colleague.getByText("you can read and write.").waitFor();
    await colleague
      .locator("[data-upload]")
      .setInputFiles([{ name: "answer.txt", mimeType: "text/plain", buffer: Buffer.from("42\n") }]);
    await colleague.getByText("1 of 1 files").waitFor();
    await colleague.getByRole("button", { name: "answer.txt", exact: true }).waitFor();

    await dialog.getByRole("button", { name: `Remove ${email}` }).click();
    await colleague.getByRole("button", { name: "Upload files" }).waitFor({ state: "detached" });
    await page.keyboard.press("Escape");
    assert.deepEqual(other.errors, [], "errors in the colleague's browser");
  } finally {
    await other.close();
  }
}

async function launch() {
  await openMainPage("Home");
  await page.keyboard.press("l");
  await page.getByRole("radiogroup", { name: "Image" }).getByRole("radio").first().waitFor();
  await page.waitForFunction(() => /available now|would be pending/.test(document.body.textContent));
  await checkPage("launch");
  if (process.env.BERTH_IMAGE) await countClick(page.getByRole("radio", { name: process.env.BERTH_IMAGE }));
  const halfButton = page.getByRole("button", { name: "0.5", exact: true });
  const fraction = (await halfButton.count()) > 0;
  if (fraction) await countClick(halfButton);
  await page.getByLabel("Name", { exact: true }).fill(session);
  await page.getByLabel(folder, { exact: true }).check();
  await countClick(page.getByRole("dialog").getByRole("button", { name: "Launch" }));
  await heading(session);
  assert(clicks <= 3, `a launch takes ${clicks} clicks instead of at most 3`);
  await page.locator('.page-head [data-status="running"]').waitFor({ timeout: 120_000 });
  return { id: new URL(page.url()).pathname.split("/").at(-1), fraction };
}

async function terminal() {
  await page.locator('[data-terminal="open"]').waitFor();
  await page.keyboard.type(`echo berth-$((6*7))-${run}\n`);
  await page.locator(".xterm-rows").getByText(`berth-42-${run}`).first().waitFor();
  await page.setViewportSize({ width: 1100, height: 760 });
  await page.setViewportSize({ width: 1360, height: 860 });
  await checkPage("terminal");
  await page.locator(".page-head").click({ position: { x: 400, y: 5 } });
}

async function tabs() {
  for (const [tab, ready] of [
    ["Apps", page.getByRole("button", { name: "Open port" })],
    ["Logs", page.getByRole("log")],
    ["Metrics", page.locator("figure, .empty").first()],
    ["Events", page.getByRole("cell", { name: "running" }).first()],
    ["Config", page.getByText("Requested")],
  ] as const) {
    await page.getByRole("tab", { name: tab }).click();
    await ready.waitFor();
    if (tab === "Metrics") await page.locator("figure .edge").first().waitFor({ state: "attached", timeout: 30_000 });
    await checkPage(`session-${tab.toLowerCase()}`);
  }
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page
    .getByText(/Open a shell/)
    .first()
    .waitFor();
  await checkPage("session-connect");
  await page.keyboard.press("Escape");
}

/** The log of a batch session appears while the session writes it. */
async function logs() {
  const { node } = await callInPage("query($id: ID!) { node(id: $id) { ... on Session { image { reference } } } }", {
    id: launched.id,
  });
  const script = `for i in 1 2 3 4 5 6; do echo line-$i-${run}; sleep 1; done`;
  const {
    createSession: { session: batch },
  } = await callInPage("mutation($input: CreateSessionInput!) { createSession(input: $input) { session { id } } }", {
    input: {
      name: `logs-${run}`,
      type: "BATCH",
      image: node.image.reference,
      slots: { cpu: "1", mem: "512m" },
      command: ["/bin/sh", "-c", script],
    },
  });
  await page.goto(`/sessions/${batch.id}`);
  const log = page.getByRole("log");
  await log
    .getByText(process.env.BERTH_MOCK ? "epoch 1 " : `line-1-${run}`)
    .first()
    .waitFor({ timeout: 60_000 });
  await log
    .getByText(process.env.BERTH_MOCK ? "still learning" : `line-6-${run}`)
    .first()
    .waitFor({ timeout: 30_000 });
  await page.getByLabel("Search the log").fill(process.env.BERTH_MOCK ? "epoch 3 " : "line-3");
  await page.getByText("1 line matches").waitFor();
  await page.locator('.page-head [data-status="terminated"]').waitFor({ timeout: 30_000 });
  await page.getByText("exit code 0").first().waitFor();
  await checkPage("session-batch");
}

async function cluster() {
  await openMainPage("Cluster");
  await page.locator("[data-agent]").first().waitFor();
  if (launched.fraction) {
    const deviceCell = page.locator(`button.slip[aria-label*="${session}"]`);
    await deviceCell.waitFor();
    await deviceCell.locator('.part.mine[data-part="0.5"]').first().waitFor();
    await deviceCell.click();
    await page.getByRole("link", { name: session }).waitFor();
  }
  await checkPage("cluster");
  await page.getByText("Table", { exact: true }).click();
  await page.getByRole("table").waitFor();
  await checkPage("cluster-table");
}

/** Stops the session through the API: the list and the cluster map update without a reload. */
async function liveUpdates() {
  await page.goto("/cluster");
  const deviceCell = page.locator(`button.slip[aria-label*="${session}"]`);
  if (launched.fraction) await deviceCell.waitFor();
  await openMainPage("Sessions");
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: session, exact: true }) });
  await row.locator('[data-status="running"]').waitFor();
  await checkPage("sessions");
  await page.evaluate(() => Object.assign(globalThis, { kept: true }));
  const requests: string[] = [];
  const recordRequest = (request: Request) =>
    request.url().endsWith("/graphql") && request.method() === "POST" && requests.push(request.postData() ?? "");
  page.on("request", recordRequest);
  await callInPage("mutation($input: TerminateSessionInput!) { terminateSession(input: $input) { session { id } } }", {
    input: { id: launched.id },
  });
  await row.locator('[data-status="terminated"]').waitFor({ timeout: 30_000 });
  page.off("request", recordRequest);
  assert.equal(requests.length, 1, `the page has sent requests of its own: ${requests.slice(1)}`);
  await openMainPage("Cluster");
  await page.locator("[data-agent]").first().waitFor();
  if (launched.fraction) await deviceCell.waitFor({ state: "detached" });
  assert(await page.evaluate(() => "kept" in globalThis), "the page was reloaded");
}

/** Changes during a lost connection appear after the reconnection. */
async function reconnect() {
  await openMainPage("Sessions");
  const name = `cut-${run}`;
  const rows = page.getByRole("row").filter({ hasText: name });
  await context.setOffline(true);
  await page.locator(".live.reconnecting").waitFor();
  const { node } = await callOutsidePage(
    "query($id: ID!) { node(id: $id) { ... on Session { image { reference } } } }",
    {
      id: launched.id,
    },
  );
  const { createSession } = await callOutsidePage(
    "mutation($input: CreateSessionInput!) { createSession(input: $input) { session { id } } }",
    {
      input: { name, image: node.image.reference, slots: { cpu: "1", mem: "256m" } },
    },
  );
  assert.equal(await rows.count(), 0);
  await context.setOffline(false);
  await page.locator(".live.live").waitFor();
  await rows.getByRole("link", { name }).waitFor();
  assert(await page.evaluate(() => "kept" in globalThis), "the page was reloaded");
  await rows.getByRole("checkbox").check();
  await page.getByRole("button", { name: "Stop selected (1)" }).click();
  await page.getByRole("dialog").getByText(name).waitFor();
  await checkPage("end");
  await page.getByRole("dialog").getByRole("button", { name: "Stop", exact: true }).click();
  await rows.locator('[data-status="terminated"], [data-status="cancelled"]').waitFor({ timeout: 60_000 });
  assert(createSession.session.id);
}

async function keyboard() {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search or run a command" }).fill(folder);
  await checkPage("palette");
  await page.keyboard.press("Enter");
  await heading(new RegExp(folder));
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await heading("Sessions");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor({ state: "detached" });
}

async function adminPages() {
  if (
    (await page.getByRole("navigation", { name: "Main navigation" }).getByRole("link", { name: "Admin" }).count()) === 0
  )
    return;
  await openMainPage("Admin");
  for (const name of ["Users", "Projects", "Policies", "Images", "Agents"]) {
    await page.getByRole("navigation", { name: "Admin pages" }).getByRole("link", { name }).click();
    await heading(name);
    if (name === "Agents") {
      await page.getByRole("button", { name: "Create a join token" }).click();
      await page.getByText("Run this command on the new machine").waitFor();
    }
    await page.locator(".panel").first().waitFor();
    await checkPage(`admin-${name.toLowerCase()}`);
  }
  await page.goto("/account");
  await heading("Profile");
  await page.getByRole("navigation", { name: "Account pages" }).getByRole("link", { name: "Logins" }).click();
  await page.getByText("this login").waitFor();
  await checkPage("account");
  await page.getByRole("navigation", { name: "Account pages" }).getByRole("link", { name: "Usage" }).click();
  await page.getByRole("region", { name: "Usage" }).getByRole("columnheader", { name: "CPU, hours" }).waitFor();
  await page.getByRole("combobox", { name: "Group by" }).click();
  await page.getByRole("option", { name: "by user" }).click();
  await page.getByRole("region", { name: "Usage" }).getByRole("columnheader", { name: "User" }).waitFor();
  await checkPage("usage");
  await lookAtStatistics(page, checkPage);
}

async function deleteFolder() {
  const { vfolders } = await callInPage(
    "query($name: String!) { vfolders(first: 1, where: { name: $name }) { edges { node { id } } } }",
    { name: folder },
  );
  await page.goto(`/data/${vfolders.edges[0].node.id}`);
  await page.getByRole("button", { name: `More actions for ${folder}` }).click();
  await page.getByRole("menuitem", { name: "Move to trash" }).click();
  await page.getByRole("button", { name: "Move to trash" }).click();
  await heading("Data");
  await page.goto("/data?show=trash");
  await page.getByRole("button", { name: `Delete permanently: ${folder}` }).click();
  await page.getByLabel(`Type ${folder} to confirm`).fill(folder);
  await page.getByRole("dialog").getByRole("button", { name: "Delete permanently" }).click();
  await page.getByText(`${folder} is being deleted.`).waitFor();
  await page.getByRole("button", { name: /account and settings/ }).click();
  await page.getByRole("menuitem", { name: "Log out" }).click();
  await heading("Log in");
}

/** Stops the sessions of a failed test, so that the next test has enough free resources. */
async function cleanUp(failed: boolean) {
  if (!failed) return;
  const { sessions } = await callOutsidePage(
    "query($q: String!) { sessions(first: 20, where: { nameContainsFold: $q, terminatedAtIsNil: true }) { edges { node { id } } } }",
    { q: run },
  );
  for (const { node } of sessions.edges) {
    await callOutsidePage(
      "mutation($input: TerminateSessionInput!) { terminateSession(input: $input) { session { id } } }",
      {
        input: { id: node.id, force: true },
      },
    );
  }
}

let launched: any;
await runSteps(
  stage,
  [
    ["log in", login],
    ["create a folder, upload, download", data],
    ["preview and edit files", previews],
    ["share a folder", sharing],
    [
      "launch a session",
      async () => {
        launched = await launch();
      },
    ],
    ["use the terminal", terminal],
    ["show all tabs of a session", tabs],
    ["follow the log of a batch session", logs],
    ["show the cluster map", cluster],
    ["show that a session has stopped", liveUpdates],
    ["lose the connection and reconnect", reconnect],
    ["use keyboard shortcuts", keyboard],
    ["show the admin pages", adminPages],
    ["delete the folder and log out", deleteFolder],
  ],
  { cleanUp },
);
