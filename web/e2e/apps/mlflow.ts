// MLflow: shows the run and the metric that the session has logged.
import { testApp } from "./visit.ts";

await testApp(({ page, root, picture }) => [
  [
    "finds the experiment",
    async () => {
      await page.goto(`${root}#/experiments`);
      await page.getByRole("link", { name: "harbour", exact: true }).first().waitFor();
      await picture("experiments");
    },
  ],
  [
    "opens the run",
    async () => {
      // The link of the experiment can open another view, so go to the list of runs directly.
      await page.goto(`${root}#/experiments/1/runs`);
      await page.getByText("first-run").first().click();
      await page.getByText("loss").first().waitFor();
    },
  ],
]);
