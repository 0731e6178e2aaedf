// What the walks through apps have in common: the app that is opened, and pictures of it.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { begin, walk } from "../stage.ts";

/** Opens an app by its ticket, and goes through the steps. Errors of the app itself are not ours. */
export async function visit(steps: (app: Awaited<ReturnType<typeof arrive>>) => [name: string, act: () => unknown][]) {
  const app = await arrive();
  await walk(
    app.stage,
    [
      ["opens the app, which starts", () => app.page.goto(app.address)],
      ...steps(app),
      ["takes a picture", () => app.picture("last")],
    ],
    { expected: /^/, sweep: (failed) => (failed ? app.picture("failed") : Promise.resolve()) },
  );
}

async function arrive() {
  const address = process.env.BERTH_APP;
  assert(address, "BERTH_APP is not set");
  const stage = await begin();
  const { page } = stage;
  page.setDefaultTimeout(Number(process.env.BERTH_WAIT ?? 120_000));
  /** The address of the app without a ticket, with a slash at its end. */
  const root = new URL("../", address).href;
  /** Polls a file of the session, which the app itself serves or another way shows. */
  async function eventually(what: string, is: () => Promise<boolean>) {
    for (const end = Date.now() + 60_000; !(await is()); await page.waitForTimeout(200))
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
