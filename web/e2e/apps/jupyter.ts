// The classic Jupyter Notebook: runs a cell.
import { testApp } from "./visit.ts";

await testApp(({ page, root }) => [
  [
    "creates a notebook",
    async () => {
      await page.locator("#notebook_list").waitFor();
      const path = await page.evaluate(async (contents) => {
        const xsrf = /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie)?.[1] ?? "";
        const made = await fetch(contents, {
          method: "POST",
          headers: { "Content-Type": "application/json", "X-XSRFToken": xsrf },
          body: JSON.stringify({ type: "notebook" }),
        });
        return ((await made.json()) as { path: string }).path;
      }, `${root}api/contents`);
      await page.goto(`${root}notebooks/${path}`);
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
]);
