// A person opens a notebook of their session through the gateway, and a cell prints 42.
import assert from "node:assert/strict";
import { begin, walk } from "./stage.ts";

const address = process.env.BERTH_APP;
assert(address, "BERTH_APP is not set");
const stage = await begin();
const { page } = stage;
page.setDefaultTimeout(180_000);

await walk(
  stage,
  [
    [
      "opens the app, which starts",
      async () => {
        await page.goto(address);
        await page.locator("#notebook_list").waitFor();
      },
    ],
    [
      "makes a notebook",
      async () => {
        const path = await page.evaluate(async () => {
          const xsrf = /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie)?.[1] ?? "";
          const made = await fetch("/api/contents", {
            method: "POST",
            headers: { "Content-Type": "application/json", "X-XSRFToken": xsrf },
            body: JSON.stringify({ type: "notebook" }),
          });
          return ((await made.json()) as { path: string }).path;
        });
        await page.goto(new URL(`/notebooks/${path}`, page.url()).href);
        await page.locator(".CodeMirror").first().click();
      },
    ],
    [
      "runs a cell",
      async () => {
        await page.waitForFunction("Jupyter.notebook?.kernel?.is_connected()");
        await page.keyboard.type("print(6 * 7)");
        await page.keyboard.press("Shift+Enter");
        await page.locator(".output_stdout", { hasText: "42" }).waitFor();
      },
    ],
  ],
  // What the notebook itself complains about: extensions that the image lacks, and the kernel that it starts twice.
  { expected: /nbextensions|SessionAlreadyStarting|Failed to load resource/ },
);
