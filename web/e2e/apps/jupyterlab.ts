// JupyterLab: runs a cell, uses the terminal, and uploads a file.
import { testApp } from "./visit.ts";

await testApp(({ page, root, eventually, picture }) => {
  /** Returns the content of a file on the server. */
  const contentOf = (name: string) =>
    page.evaluate(async (at) => {
      const answer = await fetch(at);
      return answer.ok ? String(((await answer.json()) as { content: string }).content) : "";
    }, `${root}api/contents/${name}?content=1`);
  const card = (category: string, title: RegExp) =>
    page.locator(`.jp-LauncherCard[data-category="${category}"]`).filter({ hasText: title }).first();
  return [
    [
      "runs a cell",
      async () => {
        await card("Notebook", /Python 3/).click();
        const cell = page.locator(".jp-Notebook .jp-CodeCell").first();
        await cell.locator(".cm-content").click();
        await page.keyboard.type("print(6 * 7)");
        await page.locator("#jp-main-statusbar", { hasText: "| Idle" }).waitFor();
        await page.keyboard.press("Shift+Enter");
        await cell.locator(".jp-OutputArea-output", { hasText: "42" }).waitFor();
        await picture("cell");
      },
    ],
    [
      "uses the terminal",
      async () => {
        await page.getByRole("menuitem", { name: "File", exact: true }).click();
        await page.getByRole("menuitem", { name: /^New Launcher/ }).click();
        await card("Other", /Terminal/).click();
        await page.locator(".jp-Terminal .xterm").click();
        // The shell may not be ready yet; the terminal buffers the line.
        await page.keyboard.type("echo $((6*7)) > typed.txt\n");
        await eventually("the file that the shell writes", async () => (await contentOf("typed.txt")) === "42\n");
      },
    ],
    [
      "uploads a file",
      async () => {
        const chosen = page.waitForEvent("filechooser");
        await page
          .locator(
            '.jp-FileBrowser [data-command="filebrowser:upload"], .jp-FileBrowser [title^="Upload Files"], .jp-FileBrowser [aria-label^="Upload Files"]',
          )
          .first()
          .click();
        const content = "x".repeat(3_000_000);
        await (await chosen).setFiles({ name: "upload.txt", mimeType: "text/plain", buffer: Buffer.from(content) });
        await page.locator(".jp-DirListing-item", { hasText: "upload.txt" }).waitFor();
        await eventually("the whole upload", async () => (await contentOf("upload.txt")) === content);
      },
    ],
  ];
});
