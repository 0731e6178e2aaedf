import type { Page } from "playwright-core";

/** Looks at the statistics of the account, with the sessions that ran before. */
export async function lookAtStatistics(page: Page, checkPage: (name: string) => Promise<unknown>) {
  await page.getByRole("navigation", { name: "Account pages" }).getByRole("link", { name: "Statistics" }).click();
  await page.getByRole("region", { name: "Waits" }).getByRole("columnheader", { name: "Half within" }).waitFor();
  await checkPage("waits");
  await page.getByRole("tab", { name: "Capacity" }).click();
  await page.getByRole("region", { name: "Capacity" }).getByRole("columnheader", { name: "Out of service" }).waitFor();
  await checkPage("capacity");
  await page.getByRole("tab", { name: "Waste" }).click();
  await page.getByLabel("Report").first().click();
  await page.getByRole("option", { name: "Machines without a session" }).click();
  await checkPage("waste");
}
