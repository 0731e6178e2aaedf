// MLflow shows the run that the session has logged, with its metric.
import { visit } from "./visit.ts";

await visit(({ page, root, picture }) => [
  [
    "finds the experiment",
    async () => {
      await page.goto(`${root}#/experiments`);
      await page.getByText("Model training", { exact: true }).first().click();
      await page.getByRole("link", { name: "harbour", exact: true }).first().waitFor();
      await picture("experiments");
    },
  ],
  [
    "opens the run",
    async () => {
      await page.getByRole("link", { name: "harbour", exact: true }).first().click();
      await page.getByText("first-run").first().click();
      await page.getByText("loss").first().waitFor();
    },
  ],
]);
