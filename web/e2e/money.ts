// Browser test of prices, budgets and costs. It needs a running cluster:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/money.ts
// The credentials must be those of a superadmin. Prices stay, because they cannot be deleted.

import { runSteps, startTest } from "./stage.ts";

const stage = await startTest();
const { run, page, checkPage, admin, button, dialog, heading, pick, submit, table } = stage;
const project = `money-${run}`;
let projectID = "";

const openPage = async (label: string) => {
  await stage.openAdminPage(label);
  await heading(label);
};

const priceRow = (text: string) => table("Prices").getByRole("row").filter({ hasText: text });

/** Sets a price from now, and one for later that is deleted again. */
async function prices() {
  await page.goto("/login");
  await stage.submitLogin(stage);
  await heading("Home");
  await stage.openMainPage("Admin");
  await openPage("Prices");
  await button("Set a price").click();
  let form = dialog("Set a price");
  await form.getByLabel(/^Amount in/).fill("-1");
  await button("Set price", form).click();
  await form.getByText(/is not a decimal/).waitFor();
  await form.getByLabel(/^Amount in/).fill("0.125");
  await checkPage("price-form");
  await submit(form, "Set price");
  await priceRow("0.125").first().waitFor();
  await button("Set a price").click();
  form = dialog("Set a price");
  await form.getByLabel(/^Amount in/).fill("7.654321");
  await form.getByLabel("From").fill(`${new Date().getFullYear() + 1}-06-01T00:00`);
  await submit(form, "Set price");
  await priceRow("7.654321").waitFor();
  await checkPage("prices");
  await priceRow("7.654321")
    .getByRole("button", { name: /^Delete/ })
    .click();
  await submit(dialog(/^Delete/), "Delete");
  await priceRow("7.654321").waitFor({ state: "detached" });
}

/** Creates a budget of a project, changes and deletes it. */
async function budgets() {
  await admin.login(stage.email, stage.password);
  const { viewer } = await admin.graphql("{ viewer { user { domain { id } } } }");
  projectID = (
    await admin.graphql("mutation($i: CreateProjectInput!) { createProject(input: $i) { project { id } } }", {
      i: { name: project, domain: viewer.user.domain.id },
    })
  ).createProject.project.id;
  await openPage("Budgets");
  await button("New budget").click();
  let form = dialog("New budget");
  await pick(form, "Project", project);
  await form.getByLabel(/^Soft limit/).fill("20");
  await form.getByLabel(/^Hard limit/).fill("10");
  await button("Create", form).click();
  await form.getByText(/is above the hard limit/).waitFor();
  await form.getByLabel(/^Soft limit/).fill("5");
  await checkPage("budget-form");
  await submit(form, "Create");
  const row = table("Budgets").getByRole("row").filter({ hasText: project });
  await row.getByText("0 of 10.00").waitFor();
  await row.getByRole("button", { name: /^Edit/ }).click();
  form = dialog(`Edit the budget of project ${project}`);
  await form.getByLabel(/^Soft limit/).fill("");
  await form.getByLabel(/^Hard limit/).fill("12.5");
  await submit(form, "Save");
  await row.getByText("0 of 12.50").waitFor();
  await checkPage("budgets");
  await row.getByRole("button", { name: /^Delete/ }).click();
  await submit(dialog(/^Delete the budget/), "Delete");
  await row.waitFor({ state: "detached" });
}

/** The launch sheet shows the price, and the usage has costs. */
async function costs() {
  await page.keyboard.press("l");
  await page
    .getByRole("dialog")
    .getByText(/^Price: .* an hour$/)
    .waitFor();
  await checkPage("launch-price");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.goto("/account/limits");
  await heading("My limits");
}

async function cleanUp() {
  if (projectID)
    await admin.graphql("mutation($i: DeleteProjectInput!) { deleteProject(input: $i) { id } }", {
      i: { id: projectID, name: project },
    });
}

await runSteps(
  stage,
  [
    ["set and delete prices", prices],
    ["create, change and delete a budget", budgets],
    ["show the price of a launch", costs],
  ],
  { cleanUp },
);
