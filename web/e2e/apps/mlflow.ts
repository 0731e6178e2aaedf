// MLflow shows the run that the session has logged, with its metric.
import { visit } from "./visit.ts";

await visit(({ page, root, picture }) => [
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
      // Its link opens what MLflow takes the experiment for; the runs have an address of their own.
      await page.goto(`${root}#/experiments/1/runs`);
      await page.getByText("first-run").first().click();
      await page.getByText("loss").first().waitFor();
    },
  ],
]);
