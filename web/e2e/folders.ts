// Browser test of what walk.ts does not cover of folders: names that are taken, an upload that exceeds a limit, a long
// list, a narrow page, and subscriptions of pages that the user leaves. It needs a running cluster:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/folders.ts
// The credentials must be those of a superadmin. BERTH_SHOTS names a directory for screenshots.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Api, secret } from "./account/api.ts";
import { begin, walk } from "./stage.ts";

const stage = await begin();
const { run, url, page, look, admin, button, heading, place } = stage;
const ada = { email: `folders-${run}@example.org`, password: secret("the password of ada", randomUUID()) };
const own = new Api(url);
const source = mkdtempSync(join(tmpdir(), "berth-folders-"));
const tree = join(source, "set");
const made: Record<string, any> = {};

const tray = page.getByRole("region", { name: "Uploads" });
const question = page.getByRole("dialog").filter({ has: button("Keep both") });
const file = (name: string) => button(name);
const sent = (n: number) => tray.getByText(`${n} of ${n} files`).waitFor({ timeout: 120_000 });
async function clear() {
  await button("Clear finished", tray).click();
  await tray.waitFor({ state: "detached" });
}
const note = (name: string, text: string) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
const write = (name: string, text: string) => writeFileSync(join(tree, name), text);

async function prepare() {
  await admin.login(stage.email, stage.password);
  const { viewer, volumes } = await admin.ask(
    "{ viewer { user { domain { id } } projects { id } } volumes { edges { node { id name } } } }",
  );
  const { createUser } = await admin.ask("mutation($i: CreateUserInput!) { createUser(input: $i) { user { id } } }", {
    i: { ...ada, domain: viewer.user.domain.id, projects: viewer.projects.slice(0, 1).map((p: any) => p.id) },
  });
  made.user = createUser.user.id;
  await admin.ask("mutation($i: UpdateUserInput!) { updateUser(input: $i) { user { id } } }", {
    i: { id: made.user, passwordChangeRequired: false },
  });
  await own.login(ada.email, ada.password);
  const { createVfolder } = await own.ask(
    "mutation($i: CreateVfolderInput!) { createVfolder(input: $i) { vfolder { id volume { id } } } }",
    { i: { name: `names-${run}` } },
  );
  Object.assign(made, { folder: createVfolder.vfolder.id, volume: createVfolder.vfolder.volume.id });
  assert(volumes.edges.some((v: any) => v.node.id === made.volume));
  await page.goto(`/data/${made.folder}`);
  await stage.enter(ada);
  await page.getByText("Drop files or folders here.").waitFor();
}

/** Returns the content of a file as another client reads it. */
async function inside(path: string) {
  const { createDownload } = await own.ask("mutation($i: CreateDownloadInput!) { createDownload(input: $i) { url } }", {
    i: { vfolder: made.folder, path },
  });
  return (await fetch(new URL(createDownload.url, url))).text();
}

/** Uses only the keyboard. The focus starts on the button that loses no data, and Tab reaches the other buttons. */
async function taken() {
  const files = page.locator("[data-upload]");
  await files.setInputFiles(["a.txt", "b.txt", "c.txt"].map((n) => note(n, "first")));
  await sent(3);
  await clear();
  await files.setInputFiles(["a.txt", "b.txt", "c.txt", "d.txt"].map((n) => note(n, "second, longer")));
  await page.getByRole("dialog", { name: "3 of 4 files already exist" }).waitFor();
  await button("Skip").and(page.locator(":focus")).waitFor();
  assert.equal(await tray.count(), 0, "something is sent before it was asked");
  await look("taken");
  // Keep both for the first file, then replace all others.
  const all = page.getByRole("checkbox", { name: "Do the same for all 3" });
  await all.focus();
  await page.keyboard.press("Space");
  await question.getByText("modified").first().waitFor();
  await look("taken-one");
  await button("Keep both").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "2 of 4 files already exist" }).waitFor();
  await page.getByRole("checkbox", { name: "Do the same for all 2" }).focus();
  await page.keyboard.press("Space");
  await button("Replace").focus();
  await page.keyboard.press("Enter");
  await question.waitFor({ state: "detached" });
  await sent(4);
  await clear();
  await file("a (2).txt").waitFor();
  assert.deepEqual(await Promise.all(["a.txt", "a (2).txt", "b.txt", "c.txt", "d.txt"].map(inside)), [
    "first",
    "second, longer",
    "second, longer",
    "second, longer",
    "second, longer",
  ]);
  // Escape uploads nothing.
  await files.setInputFiles([note("a.txt", "third"), note("e.txt", "third")]);
  await page.getByRole("dialog", { name: "a.txt already exists" }).waitFor();
  await page.keyboard.press("Escape");
  await question.waitFor({ state: "detached" });
  assert.equal(await tray.count(), 0, "something is sent after all");
}

/** A directory with many files is uploaded again: there is one question for all changed files. */
async function again() {
  mkdirSync(join(tree, "inner"), { recursive: true });
  for (let i = 0; i < 60; i++) write(`${i % 2 ? "inner/" : ""}n${i}.txt`, `file ${i}`);
  const dirs = page.locator("[data-upload-folder]");
  await dirs.setInputFiles(tree);
  await sent(60);
  await clear();
  for (const name of ["n0.txt", "inner/n1.txt"]) write(name, "changed");
  utimesSync(join(tree, "n2.txt"), 1e9, 1e9);
  write("n60.txt", "new");
  await dirs.setInputFiles(tree);
  await page.getByRole("dialog", { name: "3 of 61 files already exist" }).waitFor();
  await question.getByText("57 files already exist unchanged").waitFor();
  await button("Replace", question).click();
  await sent(4);
  await clear();
  assert.deepEqual(await Promise.all(["set/n0.txt", "set/inner/n1.txt", "set/n4.txt", "set/n60.txt"].map(inside)), [
    "changed",
    "changed",
    "file 4",
    "new",
  ]);
}

/** A reload keeps the decision: the upload continues without another question. */
async function reloaded() {
  let hold = true;
  await page.route(/\/storage\/uploads/, async (route) => (hold ? undefined : route.continue())); // no response
  const mine = note("a.txt", "after the reload");
  const path = join(source, "a.txt");
  writeFileSync(path, mine.buffer);
  await page.locator("[data-upload]").setInputFiles(path);
  await button("Keep both", question).click();
  await tray.getByText("a (3).txt").waitFor();
  await button("Pause all", tray).click();
  page.once("dialog", (dialog) => dialog.accept());
  await page.reload();
  hold = false;
  await page.unroute(/\/storage\/uploads/);
  await tray.getByText(/interrupted when the page was closed/).waitFor();
  await page.locator("[data-upload-again]").setInputFiles(path);
  await sent(1);
  assert.equal(await question.count(), 0, "it is asked again");
  await clear();
  assert.deepEqual(await Promise.all(["a.txt", "a (3).txt"].map(inside)), ["first", "after the reload"]);
}

/** A limit stops an upload; it continues after the limit is raised. */
async function limited() {
  const limit = (limitBytes: number) =>
    admin.ask("mutation($i: SetQuotaScopeInput!) { setQuotaScope(input: $i) { quotaScope { id } } }", {
      i: { volume: made.volume, user: made.user, limitBytes },
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
  await look("limit");
  await limit(64 << 20);
  // The page does not learn about the new limit, so retry until the storage proxy applies it.
  const on = tray.getByRole("button", { name: /Resume all|Retry failed uploads/ });
  const all = tray.getByText("8 of 8 files");
  for (const until = Date.now() + 120_000; !(await all.count()); await page.waitForTimeout(500)) {
    assert(Date.now() < until, `it does not go on: ${await tray.innerText()}`);
    if (await on.count()) await on.click({ timeout: 1000 }).catch(() => undefined); // it disappears at the end
  }
  await clear();
}

/** All columns fit on a narrow page, however long the list is. */
async function narrow() {
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
async function long() {
  const rows = 3500;
  const names = Array.from({ length: rows }, (_, i) => `d${String(i).padStart(4, "0")}`);
  for (let from = 0; from < rows; from += 1000)
    await own.ask("mutation($i: CreateDirectoriesInput!) { createDirectories(input: $i) { results { error } } }", {
      i: { vfolder: made.folder, paths: names.slice(from, from + 1000).map((n) => `long/${n}`) },
    });
  await page.goto(`/data/${made.folder}?path=long`);
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
async function left() {
  const going = new Map();
  page.on("websocket", (socket) => {
    going.clear();
    const follow =
      (sent: boolean) =>
      ({ payload }: { payload: string | Buffer }) => {
        const { type, id, payload: body } = JSON.parse(String(payload));
        if (sent && type === "subscribe") going.set(id, /subscription (\w+)/.exec(body.query)?.[1]);
        else if (type === "complete" || type === "error") going.delete(id);
      };
    socket.on("framesent", follow(true));
    socket.on("framereceived", follow(false));
  });
  const names = () => [...going.values()].sort().join(" ");
  const until = async (what: string, is: (names: string) => boolean) => {
    for (let tries = 0; !is(names()); tries++) {
      assert(tries < 300, `${what}: ${names()}`);
      await page.waitForTimeout(100);
    }
  };
  await page.goto("/");
  await heading("Home");
  await page.locator(".live.live").waitFor();
  const has = (name: string) => (now: string) => now.includes(name);
  const visit = async (title: string, own: string, go: () => Promise<unknown>) => {
    await go();
    await heading(title);
    await until(`${title} listens`, has(own));
    await place("Home");
    await heading("Home");
    await until(`after ${title}`, (now: string) => !has(own)(now));
  };
  let most = Infinity;
  for (let i = 0; i < 4; i++) {
    await visit("Data", "FoldersChanged", () => place("Data"));
    await visit(`names-${run}`, "FolderChanged", async () => {
      await place("Data");
      await page.getByRole("link", { name: `names-${run}` }).click();
    });
    await visit("Cluster", "AgentChanged", () => place("Cluster"));
    await visit("Queue", "QueueChanged", () => place("Queue"));
    await until("more is listened to with each round", () => going.size <= most);
    most = going.size;
  }
}

/** Deletes the user and their folders. */
async function sweep() {
  rmSync(source, { recursive: true, force: true });
  if (!made.user) return;
  await admin.ask("mutation($i: UpdateUserInput!) { updateUser(input: $i) { user { id } } }", {
    i: { id: made.user, status: "INACTIVE" },
  });
  await admin.ask("mutation($i: DeleteUserInput!) { deleteUser(input: $i) { task { id } } }", {
    i: { id: made.user, deleteFolders: true },
  });
}

await walk(
  stage,
  [
    ["prepare", prepare],
    ["names that are taken", taken],
    ["a directory that is sent again", again],
    ["the page is loaded again", reloaded],
    ["a limit in the middle", limited],
    ["a narrow page", narrow],
    ["a long list by keys", long],
    ["pages that are left", left],
  ],
  { sweep, expected: /status of (403|409|413|507)/ },
);
