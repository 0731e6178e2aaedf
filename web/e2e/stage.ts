// Shared by the browser tests: starting a test, running its steps, and the actions of a user on a page.
import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { Api } from "./account/api.ts";
import { environment, launchBrowser, pageChecker, runStep, type Screenshot, screenshotsTo } from "./browser.ts";

type Browser = Awaited<ReturnType<typeof launchBrowser>>;

/** Starts a test: a browser, an API client, and a random part for the names of objects. */
export async function startTest() {
  const { BERTH_URL, BERTH_EMAIL, BERTH_PASSWORD, BERTH_SHOTS } = environment();
  const screenshot = screenshotsTo(BERTH_SHOTS);
  const problems: string[] = [];
  const browsers: Browser[] = [];
  /** Opens a separate browser for another user. */
  async function openBrowser() {
    const browser = await launchBrowser(BERTH_URL);
    browsers.push(browser);
    return { ...browser, checkPage: pageChecker(browser.page, screenshot, problems), ...userActions(browser.page) };
  }
  const first = await openBrowser();
  return {
    url: BERTH_URL,
    email: BERTH_EMAIL,
    password: BERTH_PASSWORD,
    run: Math.random().toString(36).slice(2, 8),
    started: Date.now(),
    admin: new Api(BERTH_URL),
    screenshot,
    problems,
    browsers,
    openBrowser,
    ...first,
  };
}

/** The part of a started test that runSteps needs. */
interface Stage {
  browsers: Browser[];
  problems: string[];
  screenshot: Screenshot;
  started: number;
}

/**
 * Runs the named steps. It fails if a browser has logged an unexpected error or a page has a problem. cleanUp
 * always runs.
 */
export async function runSteps(
  { browsers, problems, screenshot, started }: Stage,
  steps: [name: string, act: () => unknown][],
  { cleanUp, expected = /^$/ }: { cleanUp?: (failed: boolean) => Promise<unknown>; expected?: RegExp } = {},
) {
  const unexpectedErrors = () => browsers.flatMap((b) => b.errors).filter((f) => !expected.test(f));
  try {
    for (const [name, act] of steps) await runStep(name, act);
    assert.deepEqual(unexpectedErrors(), [], "errors in the browser");
    assert.deepEqual(problems, [], "accessibility");
    console.log(`all steps passed in ${Math.round((Date.now() - started) / 1000)} s`);
  } catch (error) {
    for (const [i, b] of browsers.entries()) await screenshot(b.page, `failed-${i}`, ["light"]).catch(() => undefined);
    console.error(
      error,
      "\nat",
      browsers.map((b) => b.page.url()).join(" "),
      "\n",
      [...unexpectedErrors(), ...problems].join("\n"),
    );
    process.exitCode = 1;
  } finally {
    await cleanUp?.(process.exitCode === 1).catch((error: Error) => console.error("cleanup:", error.message));
    for (const b of browsers) await b.close();
  }
}

const escaped = (text: string) => text.replace(/[.*+?()]/g, "\\$&");

/** A page or a part of it. */
export type Place = Page | Locator;
/** A text on the page, or a pattern for it. */
export type Text = string | RegExp;

/** Returns locators and actions for a page. */
export function userActions(page: Page) {
  const button = (name: Text, within: Place = page) => within.getByRole("button", { name, exact: true });
  /** Finds a form field by its complete label. The label of a required field ends in a star. */
  const field = (within: Place, name: string) => within.getByLabel(new RegExp(`^${escaped(name)}( \\*)?$`));
  return {
    button,
    field,
    heading: (name: Text) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor(),
    dialog: (name: Text) => page.getByRole("dialog", { name }),
    table: (name: Text) => page.getByRole("table", { name }),
    listItem: (within: Place, text: Text) => within.getByRole("listitem").filter({ hasText: text }),
    row: (text: Text) => page.locator(".rows > li, .grid tbody tr").filter({ hasText: text }),
    openMainPage: (name: string) =>
      page.getByRole("navigation", { name: "Main navigation" }).getByRole("link", { name }).click(),
    openAdminPage: (name: string) =>
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
    async submit(within: Locator, name: Text) {
      await button(name, within).click();
      await within.waitFor({ state: "detached" });
    },
    /** Fills in the visible login form and submits it. */
    async submitLogin({ email, password }: { email: string; password: string }) {
      await page.getByLabel("E-mail").fill(email);
      await page.locator('input[name="password"]').fill(password);
      await button("Log in").click();
    },
  };
}
