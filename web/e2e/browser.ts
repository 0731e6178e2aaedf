// What the browser tests share: where to walk, a quiet Chromium, accessibility checks, pictures.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// Without these Chromium calls home, which a closed network refuses many times over.
const quiet = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];

interface Given {
  BERTH_URL: string;
  BERTH_EMAIL: string;
  BERTH_PASSWORD: string;
  BERTH_SHOTS?: string;
  /** What single walks need. */
  [name: string]: string | undefined;
}

/** Where to walk and as whom, from the environment. */
export function given(): Given {
  for (const name of ["BERTH_URL", "BERTH_EMAIL", "BERTH_PASSWORD"]) assert(process.env[name], `${name} is not set`);
  return process.env as unknown as Given;
}

/** One step of a walk; it is told when it went well. */
export async function step(name: string, act: () => unknown) {
  const from = Date.now();
  await act();
  console.log(`ok  ${name} (${Date.now() - from} ms)`);
}

export async function open(url: string) {
  const profile = mkdtempSync(join(tmpdir(), "berth-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: quiet,
    baseURL: url,
    viewport: { width: 1360, height: 860 },
    acceptDownloads: true,
    colorScheme: "light",
    reducedMotion: "reduce", // what fades in has half the contrast
  });
  const page = context.pages()[0] ?? (await context.newPage());
  page.setDefaultTimeout(20_000);
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(`page error: ${error.message}`));
  page.on("console", (message) => {
    // The console repeats refused logins, saves over what others changed, sockets of logins that ended, and the tries to connect while the test has cut the line.
    // Chromium drops requests when an interface of the host comes or goes: sessions change none, but agents of other tests that start and end do.
    const expected =
      /status of (401|412|429)|HTTP Authentication failed|ERR_INTERNET_DISCONNECTED|ERR_FAILED|net::ERR_NETWORK_CHANGED/;
    if (message.type() === "error" && !expected.test(message.text())) faults.push(`console: ${message.text()}`);
  });
  insist(page);
  return {
    page,
    context,
    faults,
    close: async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** Makes the page load again what Chromium dropped when an interface of the host came or went: without its script a page stays empty, without its data it stays as it is. */
function insist(page: Page) {
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
      const went = await goto(path, options).catch((why: Error) => why);
      if (dropped === before || tries === 10) {
        if (went instanceof Error) throw went;
        return went;
      }
      console.log(`    ${path} is loaded again: an interface came or went`);
    }
  };
}

interface Violation {
  id: string;
  impact: string;
  help: string;
  nodes: { target: string[]; any: { message: string }[] }[];
}

/** Takes a picture of a page in each theme. */
export type Album = (page: Page, name: string, themes?: ("light" | "dark")[]) => Promise<void>;

/** Serious and critical violations of the page as it stands. */
export async function violations(page: Page): Promise<string[]> {
  // What is being asked again is paler until the answer is there.
  await page.waitForFunction(() => !document.querySelector('[aria-busy="true"]'));
  // Half-faded text has half the contrast; a dialog begins to fade in only after it is there.
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
  await page.evaluate(axe); // by the debugger, so that the content policy stays in force
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

export function album(dir: string | undefined): Album {
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

/** Checks a page in both themes and at two widths, and keeps its pictures; what is wrong goes to the barriers. */
export function looker(page: Page, shoot: Album, barriers: string[]) {
  return async (name: string) => {
    for (const theme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: theme });
      await page.locator(`:root[data-mantine-color-scheme="${theme}"]`).waitFor();
      barriers.push(...(await violations(page)).map((v) => `${name}, ${theme}: ${v}`));
    }
    await page.emulateMedia({ colorScheme: "light" });
    const before = page.viewportSize();
    for (const width of [1280, 800]) {
      await page.setViewportSize({ width, height: 860 });
      const over = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      if (over > 0) barriers.push(`${name}: ${over} px too wide for ${width} px`);
      await shoot(page, `${name}-${width}`);
    }
    if (before) await page.setViewportSize(before);
  };
}
