// MLflow shows the run that the session has logged, with its metric.
import { visit } from "./visit.ts";

await visit(({ page, picture }) => [
  [
    "finds the experiment",
    async () => {
      await page.getByText("harbour").first().waitFor();
      await picture("experiments");
    },
  ],
  [
    "opens the run",
    async () => {
      await page.getByText("harbour").first().click();
      const run = page.getByText("first-run").first();
      const runs = page.getByText(/^(Evaluation runs|Training runs|Runs)$/).first();
      await run.or(runs).first().waitFor();
      if (!(await run.isVisible())) await runs.click();
      await run.click();
      await page.getByText("loss").first().waitFor();
    },
  ],
]);
