// Browser test that drops a directory with many files into a folder. It loses the connection twice and reloads the page
// once; the upload resumes each time:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… BERTH_FOLDER=id BERTH_SOURCE=/directory BERTH_WIRE=http://… node --import ./e2e/typescript.mjs e2e/upload.ts
// BERTH_WIRE controls the connection to the storage proxy; see e2e/folders/browser_test.go.
import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { environment, launchBrowser, runStep, screenshotsTo, violations } from "./browser.ts";

const { BERTH_URL, BERTH_EMAIL, BERTH_PASSWORD, BERTH_FOLDER, BERTH_WIRE, BERTH_SHOTS } = environment();
const source = environment().BERTH_SOURCE ?? "";

const sizes = readdirSync(source, { recursive: true, withFileTypes: true })
  .filter((f) => f.isFile())
  .map((f) => statSync(join(f.parentPath, f.name)).size);
const total = sizes.reduce((a, b) => a + b, 0);
const screenshot = screenshotsTo(BERTH_SHOTS);
const { page, context, errors, close } = await launchBrowser(BERTH_URL);
const problems: string[] = [];

/**
 * Controls the connection to the storage proxy: hold, cut or restore it. "held" waits until a client tries to send
 * more than the connection lets through.
 */
async function wire(what: string, bytes = 0) {
  const response = await fetch(`${BERTH_WIRE}/${what}?bytes=${Math.round(bytes)}`, { method: "POST" });
  assert(response.ok, `${what}: ${await response.text()}`);
}

const tray = page.getByRole("region", { name: "Uploads" });
const lost = tray.getByText("No connection.");

async function login() {
  await page.goto(`/data/${BERTH_FOLDER}`);
  await page.getByLabel("E-mail").fill(BERTH_EMAIL);
  await page.locator('input[name="password"]').fill(BERTH_PASSWORD);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("Drop files or folders here.").waitFor();
}

/** Drops the directory as a user does from the desktop. */
async function drop() {
  const zone = await page.locator(".drop-zone").boundingBox();
  assert(zone, "the page has no drop zone");
  const { x, y, width, height } = zone;
  const cdp = await context.newCDPSession(page);
  const at = { x: x + width / 2, y: y + height / 2, data: { items: [], files: [source], dragOperationsMask: 1 } };
  await wire("hold", total / 4);
  for (const type of ["dragEnter", "dragOver", "drop"] as const)
    await cdp.send("Input.dispatchDragEvent", { type, ...at });
  await tray.getByText(`of ${sizes.length} files`).waitFor();
  await wire("held");
}

async function offline() {
  await context.setOffline(true);
  await wire("cut"); // Chromium does not cut open connections when it goes offline
  await lost.waitFor();
  problems.push(...(await violations(page)));
  await screenshot(page, "lost", ["light"]);
  await wire("mend");
  await wire("hold", total / 4);
  await context.setOffline(false);
  await wire("held");
}

async function cut() {
  await wire("cut");
  await lost.waitFor();
  await wire("mend");
  await wire("hold", total / 4);
  await wire("held");
}

async function reload() {
  page.once("dialog", (dialog) => dialog.accept()); // the question whether to leave the page
  await page.reload();
  await wire("mend");
  await tray.getByText("were interrupted when the page was closed.").waitFor();
  await screenshot(page, "reloaded", ["light"]);
  await page.getByLabel("Interrupted folder").setInputFiles(source);
}

async function done() {
  await page.waitForFunction(
    () => {
      const [, sent, all] =
        /(\d+) of (\d+) files/.exec(document.querySelector(".tray [role=status]")?.textContent ?? "") ?? [];
      return (sent !== undefined && sent === all) || document.querySelector(".tray .bad") !== null;
    },
    undefined,
    { timeout: 120_000 },
  );
  await screenshot(page, "done", ["light"]);
  assert.equal(await tray.locator(".bad").count(), 0, `failed: ${await tray.locator("li").first().textContent()}`);
}

try {
  await runStep("log in", login);
  await runStep("drop a directory", drop);
  await runStep("the browser goes offline", offline);
  await runStep("the connection is cut", cut);
  await runStep("the page is reloaded", reload);
  await runStep("all files are uploaded", done);
  const cuts = /net::ERR_(CONNECTION|SOCKET|EMPTY|NETWORK)/;
  assert.deepEqual(
    errors.filter((f) => !cuts.test(f)),
    [],
    "errors in the browser",
  );
  assert.deepEqual(problems, [], "accessibility");
} catch (error) {
  await screenshot(page, "failed", ["light"]).catch(() => undefined);
  console.error(
    error,
    "\nat",
    page.url(),
    "\n",
    [...errors, ...problems].join("\n"),
    "\n",
    await tray.innerText().catch(() => "the upload tray is not visible"),
  );
  process.exitCode = 1;
} finally {
  await close();
}
