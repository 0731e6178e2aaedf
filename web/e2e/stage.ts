// What the walks through the pages have in common: how one begins and ends, and what a person does to a page.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { Api } from "./account/api.ts";
import { type Album, album, given, looker, open, step } from "./browser.ts";

type Browser = Awaited<ReturnType<typeof open>>;

/** Begins a walk: a person at a browser, an API beside it, and a part of the names of all that is made. */
export async function begin() {
  const { BERTH_URL, BERTH_EMAIL, BERTH_PASSWORD, BERTH_SHOTS } = given();
  const shoot = album(BERTH_SHOTS);
  const barriers: string[] = [];
  const browsers: Browser[] = [];
  /** Another person, at a browser of his own. */
  async function sit() {
    const browser = await open(BERTH_URL);
    browsers.push(browser);
    return { ...browser, look: looker(browser.page, shoot, barriers), ...hands(browser.page) };
  }
  const first = await sit();
  return {
    url: BERTH_URL,
    email: BERTH_EMAIL,
    password: BERTH_PASSWORD,
    run: Math.random().toString(36).slice(2, 8),
    started: Date.now(),
    admin: new Api(BERTH_URL),
    shoot,
    barriers,
    browsers,
    sit,
    ...first,
  };
}

/** What a walk needs of its beginning. */
interface Stage {
  browsers: Browser[];
  barriers: string[];
  shoot: Album;
  started: number;
}

/**
 * Goes through the steps, each with its name. Afterwards no browser may have met an error
 * but those that are expected, nor a page have had a barrier. The sweep comes in any case.
 */
export async function walk(
  { browsers, barriers, shoot, started }: Stage,
  steps: [name: string, act: () => unknown][],
  { sweep, expected = /^$/ }: { sweep?: (failed: boolean) => Promise<unknown>; expected?: RegExp } = {},
) {
  const faults = () => browsers.flatMap((b) => b.faults).filter((f) => !expected.test(f));
  try {
    for (const [name, act] of steps) await step(name, act);
    assert.deepEqual(faults(), [], "errors in the browser");
    assert.deepEqual(barriers, [], "accessibility");
    console.log(`all good in ${Math.round((Date.now() - started) / 1000)} s`);
  } catch (error) {
    for (const [i, b] of browsers.entries()) await shoot(b.page, `failed-${i}`, ["light"]).catch(() => undefined);
    console.error(
      error,
      "\nat",
      browsers.map((b) => b.page.url()).join(" "),
      "\n",
      [...faults(), ...barriers].join("\n"),
    );
    process.exitCode = 1;
  } finally {
    await sweep?.(process.exitCode === 1).catch((why: Error) => console.error("sweep:", why.message));
    for (const b of browsers) await b.close();
  }
}

const escaped = (text: string) => text.replace(/[.*+?()]/g, "\\$&");

/** A page, or a part of it. */
export type Place = Page | Locator;
/** A text on the page, or a pattern of it. */
export type Text = string | RegExp;

/** What one finds on a page and does to it. */
export function hands(page: Page) {
  const button = (name: Text, within: Place = page) => within.getByRole("button", { name, exact: true });
  /** A field of a form by the whole of its label, which ends in a star when it must be filled. */
  const field = (within: Place, name: string) => within.getByLabel(new RegExp(`^${escaped(name)}( \\*)?$`));
  return {
    button,
    field,
    heading: (name: Text) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor(),
    dialog: (name: Text) => page.getByRole("dialog", { name }),
    table: (name: Text) => page.getByRole("table", { name }),
    listed: (within: Place, text: Text) => within.getByRole("listitem").filter({ hasText: text }),
    row: (text: Text) => page.locator(".rows > li, .grid tbody tr").filter({ hasText: text }),
    place: (name: string) =>
      page.getByRole("navigation", { name: "Main navigation" }).getByRole("link", { name }).click(),
    adminPage: (name: string) =>
      page.getByRole("navigation", { name: "Admin pages" }).getByRole("link", { name, exact: true }).click(),
    /** Chooses one of a few. */
    async choose(within: Place, label: string, option: Text) {
      await field(within, label).first().click();
      await page.getByRole("option", { name: option, exact: true }).click();
    },
    /** Types into a box that is searched at the server, and takes what it finds. A dialog that
     * has just opened moves the focus to its first field, which closes the list: then it types again. */
    async pick(within: Place, label: Text, text: string) {
      const box = within.getByRole("combobox", { name: label });
      const option = page.getByRole("option").filter({ hasText: text }).first();
      for (let attempt = 1; ; attempt++) {
        await box.fill("");
        await box.fill(text);
        try {
          return await option.click({ timeout: 8000 });
        } catch (error) {
          if (attempt === 3) throw error;
        }
      }
    },
    /** Sends a form and waits until it has closed. */
    async send(within: Locator, name: Text) {
      await button(name, within).click();
      await within.waitFor({ state: "detached" });
    },
    /** Logs in where the form is. */
    async enter({ email, password }: { email: string; password: string }) {
      await page.getByLabel("E-mail").fill(email);
      await page.locator('input[name="password"]').fill(password);
      await button("Log in").click();
    },
  };
}
