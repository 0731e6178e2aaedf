// Shared by the browser tests: the environment, Chromium, accessibility checks, screenshots.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// Without these flags, Chromium calls services of Google, and a closed network rejects many requests.
const chromiumFlags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];

interface Environment {
  BERTH_URL: string;
  BERTH_EMAIL: string;
  BERTH_PASSWORD: string;
  BERTH_SHOTS?: string;
  /** Variables of single tests. */
  [name: string]: string | undefined;
}

/** Returns the URL and the credentials from the environment. */
export function environment(): Environment {
  for (const name of ["BERTH_URL", "BERTH_EMAIL", "BERTH_PASSWORD"]) assert(process.env[name], `${name} is not set`);
  return process.env as unknown as Environment;
}

/** Runs one step of a test, and prints its name and duration if it passes. */
export async function runStep(name: string, act: () => unknown) {
  const start = Date.now();
  await act();
  console.log(`ok  ${name} (${Date.now() - start} ms)`);
}

export async function launchBrowser(url: string) {
  const profile = mkdtempSync(join(tmpdir(), "berth-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: chromiumFlags,
    baseURL: url,
    viewport: { width: 1360, height: 860 },
    acceptDownloads: true,
    colorScheme: "light",
    reducedMotion: "reduce", // text that fades in has half the contrast
  });
  const page = context.pages()[0] ?? (await context.newPage());
  page.setDefaultTimeout(20_000);
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(`page error: ${error.message}`));
  page.on("console", (message) => {
    // The console shows rejected logins, conflicts of saves, WebSockets of ended logins, and connection attempts while
    // the test is offline. ERR_NETWORK_CHANGED comes when a network interface of the host appears or disappears.
    // Sessions do not cause that, but agents of other tests do.
    const expected =
      /status of (401|412|429)|HTTP Authentication failed|ERR_INTERNET_DISCONNECTED|ERR_FAILED|net::ERR_NETWORK_CHANGED/;
    if (message.type() === "error" && !expected.test(message.text())) errors.push(`console: ${message.text()}`);
  });
  retryDroppedRequests(page);
  return {
    page,
    context,
    errors,
    close: async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/**
 * Makes page.goto retry after Chromium dropped a request because a network interface of the host appeared or
 * disappeared. Without its script, the page would stay empty; without its data, it would stay outdated.
 */
function retryDroppedRequests(page: Page) {
  let dropped = 0;
  page.on("requestfailed", (request) => {
    if (
      request.failure()?.errorText === "net::ERR_NETWORK_CHANGED" &&
      ["document", "script", "fetch"].includes(request.resourceType())
    )
      dropped++;
  });
  const goto = page.goto.bind(page);
  page.goto = async (path, options) => {
    for (let tries = 1; ; tries++) {
      const before = dropped;
      const response = await goto(path, options).catch((why: Error) => why);
      if (dropped === before || tries === 10) {
        if (response instanceof Error) throw response;
        return response;
      }
      console.log(`    retry of ${path}: a network interface of the host changed`);
    }
  };
}

interface Violation {
  id: string;
  impact: string;
  help: string;
  nodes: { target: string[]; any: { message: string }[] }[];
}

/** Takes a screenshot of a page in each theme. */
export type Screenshot = (page: Page, name: string, themes?: ("light" | "dark")[]) => Promise<void>;

/** Returns the serious and critical accessibility violations of the current page. */
export async function violations(page: Page): Promise<string[]> {
  // Content that is being refetched is dimmed.
  await page.waitForFunction(() => !document.querySelector('[aria-busy="true"]'));
  // Text that fades in has half the contrast. A dialog starts to fade in only after it is in the DOM.
  await page.waitForFunction(() =>
    [...document.querySelectorAll('[role="dialog"]')].every((d) => getComputedStyle(d).opacity === "1"),
  );
  await page.evaluate(() =>
    Promise.allSettled(
      document
        .getAnimations()
        .filter((a) => a.effect?.getComputedTiming().iterations !== Infinity)
        .map((a) => a.finished),
    ),
  );
  await page.evaluate(axe); // evaluated by the debugger, so that the content security policy stays in force
  const { violations: all } = await page.evaluate(() =>
    (globalThis as unknown as { axe: { run(options: object): Promise<{ violations: Violation[] }> } }).axe.run({
      resultTypes: ["violations"],
    }),
  );
  return all
    .filter((v) => ["serious", "critical"].includes(v.impact))
    .map(
      (v) =>
        `${v.id}: ${v.nodes
          .slice(0, 3)
          .map((n) => `${n.target.join(" ")} (${n.any[0]?.message ?? v.help})`)
          .join("; ")}`,
    );
}

export function screenshotsTo(dir: string | undefined): Screenshot {
  if (dir) mkdirSync(dir, { recursive: true });
  return async (page, name, themes = ["light", "dark"]) => {
    if (!dir) return;
    for (const theme of themes) {
      await page.emulateMedia({ colorScheme: theme });
      await page.locator(`:root[data-mantine-color-scheme="${theme}"]`).waitFor();
      await page.screenshot({ path: join(dir, `${name}-${theme}.png`), animations: "disabled" });
    }
    await page.emulateMedia({ colorScheme: "light" });
  };
}

/**
 * Returns a function that checks a page in both themes and at two widths, and takes screenshots. It appends violations
 * and overflows to the problems.
 */
export function pageChecker(page: Page, screenshot: Screenshot, problems: string[]) {
  return async (name: string) => {
    for (const theme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: theme });
      await page.locator(`:root[data-mantine-color-scheme="${theme}"]`).waitFor();
      problems.push(...(await violations(page)).map((v) => `${name}, ${theme}: ${v}`));
    }
    await page.emulateMedia({ colorScheme: "light" });
    const before = page.viewportSize();
    for (const width of [1280, 800]) {
      await page.setViewportSize({ width, height: 860 });
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      if (overflow > 0) problems.push(`${name}: ${overflow} px too wide for ${width} px`);
      await screenshot(page, `${name}-${width}`);
    }
    if (before) await page.setViewportSize(before);
  };
}
