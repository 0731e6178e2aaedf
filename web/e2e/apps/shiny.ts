// Shiny: sends a changed number over the WebSocket and shows the product that R returns.
import { testApp } from "./visit.ts";

await testApp(({ page }) => [
  ["shows the first value", () => page.locator("#product", { hasText: /^14$/ }).waitFor()],
  [
    "reacts to a change",
    async () => {
      await page.locator("#number").fill("6");
      await page.locator("#product", { hasText: /^42$/ }).waitFor();
    },
  ],
]);
