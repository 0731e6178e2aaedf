// Browser test of notices and announcements: routes of a kind, a channel with its secret and a test that fails, the bell with an
// announcement, on a phone and in the dark.
// It needs a running platform and the credentials of a superadmin:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/notices.ts
// BERTH_SHOTS names a directory for pictures.

import assert from "node:assert/strict";
import { runSteps, startTest } from "./stage.ts";

const stage = await startTest();
const { run, page, checkPage, admin, button, field, heading, submit } = stage;

async function login() {
  await page.goto("/login");
  await stage.submitLogin(stage);
  await heading("Home");
  await admin.login(stage.email, stage.password);
}

async function settings() {
  await page.goto("/account/notices");
  await heading("Notices");
  const box = page.getByRole("checkbox", { name: "Session ended: Webhook" });
  await box.uncheck();
  await page.waitForFunction(
    () => !document.querySelector<HTMLInputElement>('input[aria-label="Session ended: Webhook"]')?.checked,
  );
  let routes: string[] = [];
  for (let i = 0; i < 50; i++) {
    const { noticeSettings } = await admin.graphql("{ noticeSettings { kinds { kind routes } } }");
    routes = noticeSettings.kinds.find((k: any) => k.kind === "SESSION_ENDED").routes;
    if (!routes.includes("WEBHOOK")) break;
    await page.waitForTimeout(100);
  }
  assert(!routes.includes("WEBHOOK"), `routes ${routes}`);
  await checkPage("notice-settings");
}

async function channel() {
  await button("New channel").click();
  const form = page.getByRole("dialog", { name: "New channel" });
  await field(form, "Name").fill(`hook-${run}`);
  await field(form, "Address").fill("https://127.0.0.1:1/berth");
  await checkPage("notice-channel-new");
  await submit(form, "Create");
  await page.getByText(/^whsec_/).waitFor();
  await button("I have saved it").click();
  await button(`Test hook-${run}`).click();
  await page.getByText(`hook-${run} did not receive the test`).waitFor();
  await checkPage("notice-channels");
  await button(`Delete hook-${run}`).click();
  await submit(page.getByRole("dialog", { name: `Delete hook-${run}?` }), "Delete");
  await stage.row(`hook-${run}`).waitFor({ state: "detached" });
}

async function announcement() {
  await page.goto("/admin/announcements");
  await heading("Announcements");
  await button("New announcement").click();
  const form = page.getByRole("dialog", { name: "New announcement" });
  await field(form, "Text").fill(`Maintenance **${run}** <b>today</b>`);
  await checkPage("announcement-new");
  await submit(form, "Create");
  await page.reload();
  const banner = page.locator("section.announcement", { hasText: run });
  await banner.locator("strong", { hasText: run }).waitFor();
  assert.equal(await banner.locator(".announcement-text b").count(), 0, "HTML of an announcement is not text");
  await checkPage("announcement");
  await banner.getByRole("button", { name: "Hide" }).click();
  await banner.waitFor({ state: "detached" });
  await page.goto("/admin/notices");
  await heading("Notices of the cluster");
  await checkPage("notices-cluster");
}

async function bell() {
  await page.goto("/");
  await page.getByRole("button", { name: /^Notices/ }).click();
  const drawer = page.getByRole("dialog", { name: "Notices" });
  await drawer.getByRole("link", { name: "Settings of notices" }).waitFor();
  await checkPage("notice-list");
  await page.keyboard.press("Escape");
  await drawer.waitFor({ state: "detached" });
}

async function phone() {
  await page.setViewportSize({ width: 360, height: 780 });
  await page.goto("/account/notices");
  await heading("Notices");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await stage.screenshot(page, "notices-360");
  assert(wide <= 0, `${wide} px too wide for a phone`);
  await page.setViewportSize({ width: 1360, height: 860 });
}

async function cleanUp() {
  const { announcements } = await admin.graphql("{ announcements(first: 100) { edges { node { id text } } } }");
  for (const { node } of announcements.edges)
    if (node.text.includes(run))
      await admin.graphql("mutation($i: DeleteAnnouncementInput!) { deleteAnnouncement(input: $i) { id } }", {
        i: { id: node.id },
      });
  await admin.graphql("mutation($i: SetNoticeSettingsInput!) { setNoticeSettings(input: $i) { settings { mail } } }", {
    i: { kinds: [{ kind: "SESSION_ENDED" }] },
  });
}

await runSteps(
  stage,
  [
    ["log in", login],
    ["choose routes", settings],
    ["add a channel", channel],
    ["announce", announcement],
    ["open the list", bell],
    ["use a phone", phone],
  ],
  { cleanUp },
);
