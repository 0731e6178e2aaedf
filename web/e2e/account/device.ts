// The login of a program by a code that the user confirms.

import assert from "node:assert/strict";
import type { startTest } from "../stage.ts";

type Stage = Awaited<ReturnType<typeof startTest>>;

/** Denies one program and confirms another, as the user of the page. */
export async function deviceLogin(stage: Stage) {
  const { page, heading, button, checkPage } = stage;
  const call = async (path: string, data: object) => {
    const response = await page.request.post(path, { data });
    return { status: response.status(), body: await response.json() };
  };
  const begin = async (host: string) => (await call("/auth/device-login", { host, expiresDays: 1 })).body;
  const wait = () => page.waitForTimeout(2_100); // the interval that the server asks for

  const unwanted = await begin("stranger");
  await page.goto("/device");
  await heading("Log in a program");
  await page.getByLabel("Code").fill("BBBB-BBBB");
  await button("Continue").click();
  await page.getByRole("alert").getByText("This code does not exist").waitFor();
  await checkPage("device-code");
  await page.getByLabel("Code").fill(unwanted.user_code.toLowerCase());
  await button("Continue").click();
  await heading("Log in this computer?");
  await button("Deny").click();
  await heading("Login denied");
  assert.equal((await call("/auth/device-token", { device_code: unwanted.device_code })).body.status, "denied");

  const own = await begin("workstation");
  await page.goto(new URL(own.verification_uri_complete).pathname + new URL(own.verification_uri_complete).search);
  await heading("Log in this computer?");
  await page.getByText("workstation, as it names itself").waitFor();
  await page.getByText("Confirm only if you have just started this login yourself").waitFor();
  await checkPage("device-confirm");
  await button("Confirm login").click();
  await heading("Login confirmed");
  await checkPage("device-done");
  const got = await call("/auth/device-token", { device_code: own.device_code });
  assert.equal(got.body.status, "done");
  await wait();
  assert.equal((await call("/auth/device-token", { device_code: own.device_code })).status, 404);
  await page.getByRole("link", { name: "Access tokens" }).click();
  await stage
    .row(/berth on workstation/)
    .first()
    .waitFor();
  await page.goto("/account/activity");
}
