// Shared by the tests of apps: opens an app, runs the steps and takes screenshots.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { runSteps, startTest } from "../stage.ts";

/**
 * Opens the app at BERTH_APP, which contains a ticket, and runs the steps. Errors in the console are ignored, because
 * the app may log its own.
 */
export async function testApp(
  steps: (app: Awaited<ReturnType<typeof openApp>>) => [name: string, act: () => unknown][],
) {
  const app = await openApp();
  await runSteps(
    app.stage,
    [
      ["starts and opens the app", () => app.page.goto(app.address)],
      ...steps(app),
      ["takes a screenshot", () => app.picture("last")],
    ],
    { expected: /^/, cleanUp: (failed) => (failed ? app.picture("failed") : Promise.resolve()) },
  );
}

async function openApp() {
  const address = process.env.BERTH_APP;
  assert(address, "BERTH_APP is not set");
  const stage = await startTest();
  const { page } = stage;
  page.setDefaultTimeout(Number(process.env.BERTH_WAIT ?? 120_000));
  /** The URL of the app without the ticket, with a slash at the end. */
  const root = new URL("../", address).href;
  /** Polls a condition for up to a minute. */
  async function eventually(what: string, condition: () => Promise<boolean>) {
    for (const end = Date.now() + 60_000; !(await condition()); await page.waitForTimeout(200))
      assert(Date.now() < end, `timeout: ${what}`);
  }
  async function picture(name: string) {
    const dir = process.env.BERTH_SHOTS;
    if (!dir) return;
    mkdirSync(dir, { recursive: true });
    await page.screenshot({ path: join(dir, `${process.env.BERTH_PICTURE ?? "app"}-${name}.png`) });
  }
  return { stage, page, address, root, eventually, picture };
}
