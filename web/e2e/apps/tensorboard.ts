// TensorBoard: shows the run that the session has logged.
import { visit } from "./visit.ts";

await visit(({ page }) => [
  [
    "shows the run",
    async () => {
      await page.getByText("first-run").first().waitFor();
      await page.getByText("loss").first().waitFor();
    },
  ],
]);
