// Shiny: sends a changed number over the WebSocket and shows the product that R returns.
import { visit } from "./visit.ts";

await visit(({ page }) => [
  ["shows the first value", () => page.locator("#product", { hasText: /^14$/ }).waitFor()],
  [
    "reacts to a change",
    async () => {
      await page.locator("#number").fill("6");
      await page.locator("#product", { hasText: /^42$/ }).waitFor();
    },
  ],
]);
