// VS Code: edits and saves a file, runs a command in the terminal, and starts the extension host.
import { testApp } from "./visit.ts";

await testApp(({ page, picture }) => {
  const explorer = (name: string) => page.locator(".explorer-folders-view .monaco-list-row", { hasText: name });
  /** Runs a command by its title. */
  async function command(title: string) {
    await page.keyboard.press("F1");
    const box = page.locator(".quick-input-widget input");
    await box.waitFor();
    await box.fill(`>${title}`);
    await page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().click();
  }
  return [
    [
      "trusts the folder",
      async () => {
        await page.getByRole("button", { name: "Yes, I trust the authors" }).click();
        await explorer("note.txt").waitFor();
      },
    ],
    [
      "edits a file",
      async () => {
        await explorer("note.txt").dblclick();
        const editor = page.locator(".editor-instance .monaco-editor").first();
        await editor.waitFor();
        await editor.click();
        await page.keyboard.press("Control+Home");
        await page.keyboard.type("six times seven\n");
        await page.keyboard.press("Control+S");
        await page.locator(".tab.dirty").waitFor({ state: "detached" });
        await picture("edit");
      },
    ],
    [
      "uses the terminal",
      async () => {
        await command("Terminal: Create New Terminal");
        const terminal = page.locator(".terminal-wrapper.active .xterm");
        await terminal.waitFor();
        await terminal.click();
        await page.keyboard.type("cat note.txt > typed.txt\n");
        await explorer("typed.txt").waitFor();
        await picture("terminal");
      },
    ],
    [
      "starts the extension host",
      async () => {
        await command("Developer: Show Running Extensions");
        // The list shows an activation time once the extension host has activated the extension.
        await page
          .locator(".editor-instance .extension", { hasText: /Activation:\s*\d+ms/ })
          .first()
          .waitFor();
      },
    ],
  ];
});
