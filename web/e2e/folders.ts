// Browser test of what walk.ts does not cover of folders: names that are taken, an upload that exceeds a limit, a long
// list, a narrow page, and subscriptions of pages that the user leaves. It needs a running cluster:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/folders.ts
// The credentials must be those of a superadmin. BERTH_SHOTS names a directory for screenshots.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Api, recordSecret } from "./account/api.ts";
import { runSteps, startTest } from "./stage.ts";

const stage = await startTest();
const { run, url, page, checkPage, admin, button, heading, openMainPage } = stage;
const ada = { email: `folders-${run}@example.org`, password: recordSecret("the password of ada", randomUUID()) };
const userApi = new Api(url);
const source = mkdtempSync(join(tmpdir(), "berth-folders-"));
const tree = join(source, "set");
const fixtures: Record<string, any> = {};

const tray = page.getByRole("region", { name: "Uploads" });
const questionDialog = page.getByRole("dialog").filter({ has: button("Keep both") });
const file = (name: string) => button(name);
const waitForUploads = (n: number) => tray.getByText(`${n} of ${n} files`).waitFor({ timeout: 120_000 });
async function clearFinished() {
  await button("Clear finished", tray).click();
  await tray.waitFor({ state: "detached" });
}
const textFile = (name: string, text: string) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
const writeToTree = (name: string, text: string) => writeFileSync(join(tree, name), text);

async function prepare() {
  await admin.login(stage.email, stage.password);
  const { viewer, volumes } = await admin.graphql(
    "{ viewer { user { domain { id } } projects { id } } volumes { edges { node { id name } } } }",
  );
  const { createUser } = await admin.graphql(
    "mutation($i: CreateUserInput!) { createUser(input: $i) { user { id } } }",
    {
      i: { ...ada, domain: viewer.user.domain.id, projects: viewer.projects.slice(0, 1).map((p: any) => p.id) },
    },
  );
  fixtures.user = createUser.user.id;
  await admin.graphql("mutation($i: UpdateUserInput!) { updateUser(input: $i) { user { id } } }", {
    i: { id: fixtures.user, passwordChangeRequired: false },
  });
  await userApi.login(ada.email, ada.password);
  const { createVfolder } = await userApi.graphql(
    "mutation($i: CreateVfolderInput!) { createVfolder(input: $i) { vfolder { id volume { id } } } }",
    { i: { name: `names-${run}` } },
  );
  Object.assign(fixtures, { folder: createVfolder.vfolder.id, volume: createVfolder.vfolder.volume.id });
  assert(volumes.edges.some((v: any) => v.node.id === fixtures.volume));
  await page.goto(`/data/${fixtures.folder}`);
  await stage.submitLogin(ada);
  await page.getByText("Drop files or folders here.").waitFor();
}

/** Returns the content of a file as another client reads it. */
async function contentOf(path: string) {
  const { createDownload } = await userApi.graphql(
    "mutation($i: CreateDownloadInput!) { createDownload(input: $i) { url } }",
    {
      i: { vfolder: fixtures.folder, path },
    },
  );
  return (await fetch(new URL(createDownload.url, url))).text();
}

/** Uses only the keyboard. The focus starts on the button that loses no data, and Tab reaches the other buttons. */
async function takenNames() {
  const files = page.locator("[data-upload]");
  await files.setInputFiles(["a.txt", "b.txt", "c.txt"].map((n) => textFile(n, "first")));
  await waitForUploads(3);
  await clearFinished();
  await files.setInputFiles(["a.txt", "b.txt", "c.txt", "d.txt"].map((n) => textFile(n, "second, longer")));
  await page.getByRole("dialog", { name: "3 of 4 files already exist" }).waitFor();
  await button("Skip").and(page.locator(":focus")).waitFor();
  assert.equal(await tray.count(), 0, "an upload starts before the user has answered");
  await checkPage("taken");
  // Keep both for the first file, then replace all others.
  const all = page.getByRole("checkbox", { name: "Do the same for all 3" });
  await all.focus();
  await page.keyboard.press("Space");
  await questionDialog.getByText("modified").first().waitFor();
  await checkPage("taken-one");
  await button("Keep both").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "2 of 4 files already exist" }).waitFor();
  await page.getByRole("checkbox", { name: "Do the same for all 2" }).focus();
  await page.keyboard.press("Space");
  await button("Replace").focus();
  await page.keyboard.press("Enter");
  await questionDialog.waitFor({ state: "detached" });
  await waitForUploads(4);
  await clearFinished();
  await file("a (2).txt").waitFor();
  assert.deepEqual(await Promise.all(["a.txt", "a (2).txt", "b.txt", "c.txt", "d.txt"].map(contentOf)), [
    "first",
    "second, longer",
    "second, longer",
    "second, longer",
    "second, longer",
  ]);
  // Escape uploads nothing.
  await files.setInputFiles([textFile("a.txt", "third"), textFile("e.txt", "third")]);
  await page.getByRole("dialog", { name: "a.txt already exists" }).waitFor();
  await page.keyboard.press("Escape");
  await questionDialog.waitFor({ state: "detached" });
  assert.equal(await tray.count(), 0, "an upload starts after Escape");
}

/** A directory with many files is uploaded again: there is one question for all changed files. */
async function uploadAgain() {
  mkdirSync(join(tree, "inner"), { recursive: true });
  for (let i = 0; i < 60; i++) writeToTree(`${i % 2 ? "inner/" : ""}n${i}.txt`, `file ${i}`);
  const dirs = page.locator("[data-upload-folder]");
  await dirs.setInputFiles(tree);
  await waitForUploads(60);
  await clearFinished();
  for (const name of ["n0.txt", "inner/n1.txt"]) writeToTree(name, "changed");
  utimesSync(join(tree, "n2.txt"), 1e9, 1e9);
  writeToTree("n60.txt", "new");
  await dirs.setInputFiles(tree);
  await page.getByRole("dialog", { name: "3 of 61 files already exist" }).waitFor();
  await questionDialog.getByText("57 files already exist unchanged").waitFor();
  await button("Replace", questionDialog).click();
  await waitForUploads(4);
  await clearFinished();
  assert.deepEqual(await Promise.all(["set/n0.txt", "set/inner/n1.txt", "set/n4.txt", "set/n60.txt"].map(contentOf)), [
    "changed",
    "changed",
    "file 4",
    "new",
  ]);
}

/** A reload keeps the decision: the upload continues without another question. */
async function reloadDuringUpload() {
  let hold = true;
  await page.route(/\/storage\/uploads/, async (route) => (hold ? undefined : route.continue())); // no response
  const mine = textFile("a.txt", "after the reload");
  const path = join(source, "a.txt");
  writeFileSync(path, mine.buffer);
  await page.locator("[data-upload]").setInputFiles(path);
  await button("Keep both", questionDialog).click();
  await tray.getByText("a (3).txt").waitFor();
  await button("Pause all", tray).click();
  page.once("dialog", (dialog) => dialog.accept());
  await page.reload();
  hold = false;
  await page.unroute(/\/storage\/uploads/);
  await tray.getByText(/interrupted when the page was closed/).waitFor();
  await page.locator("[data-upload-again]").setInputFiles(path);
  await waitForUploads(1);
  assert.equal(await questionDialog.count(), 0, "the question appears again");
  await clearFinished();
  assert.deepEqual(await Promise.all(["a.txt", "a (3).txt"].map(contentOf)), ["first", "after the reload"]);
}

/** A limit stops an upload; it continues after the limit is raised. */
async function limitDuringUpload() {
  const limit = (limitBytes: number) =>
    admin.graphql("mutation($i: SetQuotaScopeInput!) { setQuotaScope(input: $i) { quotaScope { id } } }", {
      i: { volume: fixtures.volume, user: fixtures.user, limitBytes },
    });
  await limit(1 << 20);
  // Each of the large files exceeds the limit alone, even if the reported usage is outdated.
  const parts = Array.from({ length: 8 }, (_, i) => ({
    name: `part-${i}.bin`,
    mimeType: "application/octet-stream",
    buffer: Buffer.alloc(i < 4 ? 4 << 10 : 2 << 20, i),
  }));
  await page.locator("[data-upload]").setInputFiles(parts);
  await tray.locator(".bad").first().waitFor();
  await tray.getByRole("alert").getByText(/limit/).first().waitFor();
  await tray.getByText("No space is left").waitFor();
  await checkPage("limit");
  await limit(64 << 20);
  // The page does not learn about the new limit, so retry until the storage proxy applies it.
  const retryButton = tray.getByRole("button", { name: /Resume all|Retry failed uploads/ });
  const all = tray.getByText("8 of 8 files");
  for (const deadline = Date.now() + 120_000; !(await all.count()); await page.waitForTimeout(500)) {
    assert(Date.now() < deadline, `timeout: not all files are uploaded: ${await tray.innerText()}`);
    // The button can disappear before the click, when all files are uploaded.
    if (await retryButton.count()) await retryButton.click({ timeout: 1000 }).catch(() => undefined);
  }
  await clearFinished();
}

/** All columns fit on a narrow page, however long the list is. */
async function narrowPage() {
  await page.setViewportSize({ width: 390, height: 860 });
  await heading(`names-${run}`);
  await page.getByRole("table", { name: "Files" }).waitFor();
  // Wait until the layout is stable.
  await page.waitForFunction(() => {
    const [box, list] = [".explorer", ".files"].map((s) => document.querySelector(s)!.getBoundingClientRect().width);
    return Math.abs(box - list) < 4 && document.documentElement.scrollWidth === document.documentElement.clientWidth;
  });
  await page.setViewportSize({ width: 1360, height: 860 });
}

/** The End key moves to the end of a long list: each press loads more rows and focuses the last loaded one. */
async function longList() {
  const rows = 3500;
  const names = Array.from({ length: rows }, (_, i) => `d${String(i).padStart(4, "0")}`);
  for (let from = 0; from < rows; from += 1000)
    await userApi.graphql(
      "mutation($i: CreateDirectoriesInput!) { createDirectories(input: $i) { results { error } } }",
      {
        i: { vfolder: fixtures.folder, paths: names.slice(from, from + 1000).map((n) => `long/${n}`) },
      },
    );
  await page.goto(`/data/${fixtures.folder}?path=long`);
  await button("d0000/").focus();
  for (let last = 999; ; last = Math.min(last + 1000, rows - 1)) {
    await page.keyboard.press("End");
    await button(`d${String(last).padStart(4, "0")}/`)
      .and(page.locator(":focus"))
      .waitFor();
    if (last === rows - 1) return;
    await button(`d${String(last + 1).padStart(4, "0")}/`).waitFor({ state: "attached" });
  }
}

/** A page cancels its subscriptions when the user leaves it. */
async function subscriptionsEnd() {
  const subscriptions = new Map();
  page.on("websocket", (socket) => {
    subscriptions.clear();
    const track =
      (sent: boolean) =>
      ({ payload }: { payload: string | Buffer }) => {
        const { type, id, payload: body } = JSON.parse(String(payload));
        if (sent && type === "subscribe") subscriptions.set(id, /subscription (\w+)/.exec(body.query)?.[1]);
        else if (type === "complete" || type === "error") subscriptions.delete(id);
      };
    socket.on("framesent", track(true));
    socket.on("framereceived", track(false));
  });
  const names = () => [...subscriptions.values()].sort().join(" ");
  const waitUntil = async (what: string, is: (names: string) => boolean) => {
    for (let tries = 0; !is(names()); tries++) {
      assert(tries < 300, `${what}: ${names()}`);
      await page.waitForTimeout(100);
    }
  };
  await page.goto("/");
  await heading("Home");
  await page.locator(".live.live").waitFor();
  const has = (name: string) => (now: string) => now.includes(name);
  const visit = async (title: string, subscription: string, go: () => Promise<unknown>) => {
    await go();
    await heading(title);
    await waitUntil(`the page ${title} subscribes to ${subscription}`, has(subscription));
    await openMainPage("Home");
    await heading("Home");
    await waitUntil(`the subscription ${subscription} ends`, (now: string) => !has(subscription)(now));
  };
  let maxSubscriptions = Infinity;
  for (let i = 0; i < 4; i++) {
    await visit("Data", "FoldersChanged", () => openMainPage("Data"));
    await visit(`names-${run}`, "FolderChanged", async () => {
      await openMainPage("Data");
      await page.getByRole("link", { name: `names-${run}` }).click();
    });
    await visit("Cluster", "AgentChanged", () => openMainPage("Cluster"));
    await visit("Queue", "QueueChanged", () => openMainPage("Queue"));
    await waitUntil("no round adds a subscription", () => subscriptions.size <= maxSubscriptions);
    maxSubscriptions = subscriptions.size;
  }
}

/** Deletes the user and their folders. */
async function cleanUp() {
  rmSync(source, { recursive: true, force: true });
  if (!fixtures.user) return;
  await admin.graphql("mutation($i: UpdateUserInput!) { updateUser(input: $i) { user { id } } }", {
    i: { id: fixtures.user, status: "INACTIVE" },
  });
  await admin.graphql("mutation($i: DeleteUserInput!) { deleteUser(input: $i) { task { id } } }", {
    i: { id: fixtures.user, deleteFolders: true },
  });
}

await runSteps(
  stage,
  [
    ["create a user and a folder", prepare],
    ["upload files with taken names", takenNames],
    ["upload a directory again", uploadAgain],
    ["reload the page during an upload", reloadDuringUpload],
    ["reach the limit during an upload", limitDuringUpload],
    ["use a narrow page", narrowPage],
    ["move through a long list by keyboard", longList],
    ["subscriptions end with their page", subscriptionsEnd],
  ],
  { cleanUp, expected: /status of (403|409|413|507)/ },
);
