// TensorBoard: shows the run that the session has logged.
import { testApp } from "./visit.ts";

await testApp(({ page }) => [
  [
    "shows the run",
    async () => {
      await page.getByText("first-run").first().waitFor();
      await page.getByText("loss").first().waitFor();
    },
  ],
]);
