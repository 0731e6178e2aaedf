// Shared by the browser tests: starting a test, running its steps, and the actions of a user on a page.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { Api } from "./account/api.ts";
import { type Album, album, given, looker, open, step } from "./browser.ts";

type Browser = Awaited<ReturnType<typeof open>>;

/** Starts a test: a browser, an API client, and a random part for the names of objects. */
export async function begin() {
  const { BERTH_URL, BERTH_EMAIL, BERTH_PASSWORD, BERTH_SHOTS } = given();
  const shoot = album(BERTH_SHOTS);
  const barriers: string[] = [];
  const browsers: Browser[] = [];
  /** Opens a separate browser for another user. */
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

/** The part of a started test that walk needs. */
interface Stage {
  browsers: Browser[];
  barriers: string[];
  shoot: Album;
  started: number;
}

/**
 * Runs the named steps. It fails if a browser has logged an unexpected error or a page has a problem. The sweep always
 * runs.
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

/** A page or a part of it. */
export type Place = Page | Locator;
/** A text on the page, or a pattern for it. */
export type Text = string | RegExp;

/** Returns locators and actions for a page. */
export function hands(page: Page) {
  const button = (name: Text, within: Place = page) => within.getByRole("button", { name, exact: true });
  /** Finds a form field by its complete label. The label of a required field ends in a star. */
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
    /** Selects an option of a Select. */
    async choose(within: Place, label: string, option: Text) {
      await field(within, label).first().click();
      await page.getByRole("option", { name: option, exact: true }).click();
    },
    /**
     * Types into a box that searches on the server, and selects the first match. A dialog that has just opened moves
     * the focus to its first field, which closes the list, so it tries up to three times.
     */
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
    /** Submits a form and waits until it is closed. */
    async send(within: Locator, name: Text) {
      await button(name, within).click();
      await within.waitFor({ state: "detached" });
    },
    /** Fills in the visible login form and submits it. */
    async enter({ email, password }: { email: string; password: string }) {
      await page.getByLabel("E-mail").fill(email);
      await page.locator('input[name="password"]').fill(password);
      await button("Log in").click();
    },
  };
}
