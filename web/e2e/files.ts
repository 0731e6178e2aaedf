// Browser test of the files of a running session: browse, upload, preview, edit, rename, delete and download, with mouse
// and keyboard. It needs a running cluster:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/files.ts
// The credentials must be those of a superadmin. BERTH_SHOTS names a directory for screenshots, BERTH_IMAGE the image of
// the session.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runSteps, startTest } from "./stage.ts";

const stage = await startTest();
const { run, page, checkPage, admin, button, heading, dialog } = stage;
const name = `files-${run}`;
const tray = page.getByRole("region", { name: "Uploads" });
const details = (file: string) => page.getByRole("region", { name: `Details of ${file}` });
const uploads = page.locator("[data-upload]");
const source = mkdtempSync(join(tmpdir(), "berth-files-"));
const weights = Buffer.alloc(20 << 20, 7);
const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFElEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC",
  "base64",
);
let session = "";

const waitForUploads = (n: number) => tray.getByText(`${n} of ${n} files`).waitFor({ timeout: 120_000 });
async function clearFinished() {
  await button("Clear finished", tray).click();
  await tray.waitFor({ state: "detached" });
}

async function prepare() {
  await admin.login(stage.email, stage.password);
  const { createSession } = await admin.graphql(
    "mutation($i: CreateSessionInput!) { createSession(input: $i) { session { id } } }",
    {
      i: {
        name,
        image: process.env.BERTH_IMAGE ?? "minimal:1",
        slots: { cpu: "0.1", mem: "128m" },
        apps: [{ name: "broken", port: 8123, command: ["/bin/false"] }],
      },
    },
  );
  session = createSession.session.id;
  await page.goto(`/sessions/${session}?tab=files`);
  await stage.submitLogin(stage);
  await heading(name);
  // The tab shows the files as soon as the session runs.
  await button("Upload files").waitFor({ timeout: 120_000 });
  await page.getByRole("navigation", { name: "Path in the folder" }).getByText("home").waitFor();
}

async function upload() {
  const files: Record<string, string | Buffer> = {
    "notes.md": "# Results\n42\n",
    "picture.png": png,
    "weights.bin": weights, // larger than one request
    "page.html": "<script>document.title='owned'</script>",
  };
  for (const [file, content] of Object.entries(files)) writeFileSync(join(source, file), content);
  await uploads.setInputFiles(Object.keys(files).map((file) => join(source, file)));
  await waitForUploads(4);
  await checkPage("session-files-tray");
  await clearFinished();
  await button("weights.bin").waitFor();
}

async function preview() {
  await button("notes.md").click();
  await details("notes.md").getByText("# Results").waitFor();
  await details("notes.md").getByText("-rw-r--r--").waitFor();
  await checkPage("session-files");
  await button("picture.png").click();
  await details("picture.png").getByRole("img", { name: "picture.png" }).waitFor();
  await details("picture.png").getByText("8 × 8").waitFor();
}

async function edit() {
  await button("notes.md").click();
  await button("Edit", details("notes.md")).click();
  const editor = dialog("Edit notes.md");
  await editor.getByRole("textbox").fill("# Results\n43\n");
  // In the meantime, a program in the session saves the file.
  await page.evaluate(
    async ([id]) =>
      fetch(`/sessions/${id}/files/content?path=notes.md`, {
        method: "PUT",
        headers: { "X-Berth-CSRF": "1" },
        body: "theirs",
      }),
    [session] as const,
  );
  await button("Save", editor).click();
  await editor.getByText("Someone changed the file after you opened it.").waitFor();
  await button("Overwrite with mine", editor).click();
  await editor.waitFor({ state: "detached" });
  await details("notes.md").getByText("43").waitFor();
}

async function keyboard() {
  await button("New directory").click();
  await dialog("New directory").getByLabel("Name").fill("runs");
  await page.keyboard.press("Enter");
  await button("runs/").waitFor();
  await button("notes.md").focus();
  await page.keyboard.press("F2");
  await dialog("Rename notes.md").getByLabel("Name").fill("results.md");
  await page.keyboard.press("Enter");
  await button("results.md").waitFor();
  await button("runs/").focus();
  await page.keyboard.press("Enter");
  await page.getByText("This directory is empty").waitFor();
  await checkPage("session-files-empty");
  await page.goBack();
  await button("results.md").focus();
  await page.keyboard.press("Delete");
  await button("Delete", dialog("Delete one entry?")).click();
  await button("results.md").waitFor({ state: "detached" });
}

/** Drops a file onto the page. */
async function drop() {
  const data = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["dropped"], "dropped.txt"));
    return transfer;
  });
  await page.locator(".drop-zone").dispatchEvent("drop", { dataTransfer: data });
  await waitForUploads(1);
  await clearFinished();
  await button("dropped.txt").waitFor();
}

async function download() {
  const get = async (click: () => Promise<void>) => {
    const [file] = await Promise.all([page.waitForEvent("download"), click()]);
    return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
  };
  await button("weights.bin").click();
  const got = await get(() => button("Download weights.bin", details("weights.bin")).click());
  assert.equal(got.name, "weights.bin");
  assert(got.bytes.equals(weights));
  const zip = await get(() => button("Download as zip").first().click());
  assert.equal(zip.bytes.subarray(0, 2).toString(), "PK");
  // An HTML file of a container is downloaded and never rendered in the origin of the page.
  const opened = await stage.context.request.get(`/sessions/${session}/files/content?path=page.html`);
  assert.match(opened.headers()["content-disposition"] ?? "", /^attachment/);
  assert.match(opened.headers()["content-security-policy"] ?? "", /^sandbox/);
}

/** Directories outside of the home directory, including those that the user cannot read or that do not exist. */
async function otherDirectories() {
  await page.goto(`/sessions/${session}?tab=files&path=/`);
  await button("proc/").waitFor();
  await button("Home directory").waitFor();
  await checkPage("session-files-root");
  await page.goto(`/sessions/${session}?tab=files&path=/proc/1/fd`);
  await page.getByRole("region", { name: "Files" }).waitFor();
  await page.goto(`/sessions/${session}?tab=files&path=/nowhere`);
  await page.getByText("not found").waitFor();
  await button("Home directory").click();
  await button("weights.bin").waitFor();
}

async function narrow() {
  await page.setViewportSize({ width: 360, height: 740 });
  await button("picture.png").click();
  await details("picture.png").waitFor();
  await checkPage("session-files-narrow");
  await stage.screenshot(page, "session-files-360");
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert(width <= 360, `the page is ${width} px wide`);
  await page.setViewportSize({ width: 1360, height: 860 });
}

/** The list of sessions shows that an app failed, and why. */
async function appsInList() {
  await admin.graphql("mutation($i: AppActionInput!) { restartApp(input: $i) { app { status } } }", {
    i: { session, app: "broken" },
  });
  await page.goto("/sessions");
  const failed = page.getByRole("link", { name: new RegExp(`^broken failed ?: .+ \\(${name}\\)`, "i") });
  await failed.waitFor({ timeout: 60_000 });
  await checkPage("session-list-apps");
  await failed.click();
  await page.getByRole("tab", { name: "Apps", selected: true }).waitFor();
  await button("Connect").click();
  await dialog(`Connect to ${name}`).waitFor();
  await checkPage("session-connect");
  await page.keyboard.press("Escape");
}

/** After the session has ended, the tab explains what happened to its files. */
async function sessionEnd() {
  await page.goto(`/sessions/${session}?tab=files`);
  await button("weights.bin").waitFor();
  await admin.graphql("mutation($i: TerminateSessionInput!) { terminateSession(input: $i) { session { id } } }", {
    i: { id: session, force: true },
  });
  await page.getByText("The files of the containers were removed with the session.").waitFor({ timeout: 60_000 });
  await checkPage("session-files-over");
}

await runSteps(
  stage,
  [
    ["start a session and show its home directory", prepare],
    ["upload files", upload],
    ["preview text and images", preview],
    ["edit a text that another program has changed", edit],
    ["create, rename and delete by keyboard", keyboard],
    ["drop a file", drop],
    ["download files", download],
    ["open other directories", otherDirectories],
    ["use a narrow page", narrow],
    ["show a failed app in the list of sessions", appsInList],
    ["stop the session", sessionEnd],
  ],
  {
    expected: /status of 404/,
    cleanUp: () => {
      rmSync(source, { recursive: true, force: true });
      return admin.graphql("mutation($i: TerminateSessionInput!) { terminateSession(input: $i) { session { id } } }", {
        i: { id: session, force: true },
      });
    },
  },
);
