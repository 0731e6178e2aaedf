// Browser test of the login page and the account pages, as a new user. It needs a running cluster:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/account.ts
// The credentials must be those of a superadmin. BERTH_SHOTS names a directory for screenshots.

import assert from "node:assert/strict";
import { createHash, generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import type { Variables } from "./account/api.ts";
import { Api, Authenticator, recordSecret, sendSigned } from "./account/api.ts";
import { deviceLogin } from "./account/device.ts";
import type { Text } from "./stage.ts";
import { runSteps, startTest } from "./stage.ts";

const stage = await startTest();
const { run, url, page, checkPage, admin, button, heading, row } = stage;
const domain = `acc-${run}`;
interface Person {
  id?: string;
  email: string;
  password: string;
  /** The authenticator app, after two-step login is set up. */
  authenticator: Authenticator | null;
  codes: string[];
}

const ada: Person = { email: `ada-${run}@example.org`, password: "", authenticator: null, codes: [] };
const guest = { email: `guest-${run}@example.org`, password: `guest ${run} password` };
const applicant = { email: `wait-${run}@example.org`, password: `wait ${run} password` };
const longPassword = `ada ${run} long password`;

const fixtures: Record<string, any> = {};

const field = (name: string, within: Page | Locator = page) => stage.field(within, name);
/** Waits until a field has the focus. A dialog focuses its first field after it has opened. */
const focused = (name: string) => field(name).and(page.locator(":focus")).waitFor();
const waitForText = (text: Text) => page.getByText(text).first().waitFor();
const dialog = () => page.getByRole("dialog");

/** Focuses a control and presses a key. */
async function pressKey(locator: Locator, key = "Enter") {
  await locator.focus();
  await page.keyboard.press(key);
}

/** Types each text into a field and presses Tab between them, then Enter, as a user without a mouse. */
async function typeFields(...texts: string[]) {
  for (const [i, text] of texts.entries()) {
    if (i > 0) await page.keyboard.press("Tab");
    await page.keyboard.type(text);
  }
  await page.keyboard.press("Enter");
}

async function openAccountPage(name: string) {
  await pressKey(page.getByRole("navigation", { name: "Account pages" }).getByRole("link", { name, exact: true }));
  await heading(name);
}

/** Opens a menu and selects an item with the arrow keys. */
async function chooseMenuItem(target: Locator, name: string) {
  const item = page.getByRole("menuitem", { name, exact: true });
  await pressKey(target);
  await item.waitFor();
  for (let i = 0; i < 20 && !(await item.evaluate((e) => e === document.activeElement)); i++)
    await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await item.waitFor({ state: "detached" });
}

/** Waits for a download and returns its file name and text. */
async function download(act: () => unknown) {
  const [file] = await Promise.all([page.waitForEvent("download"), act()]);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
}

async function login(who: { email: string; password: string }, { code }: { code?: string } = {}) {
  await heading("Log in");
  await page.getByLabel("E-mail").focus();
  await page.keyboard.type(who.email);
  await page.locator('input[name="password"]').focus();
  await typeFields(who.password);
  if (!code) return;
  await heading("Two-step login");
  await typeFields(code);
}

async function logout() {
  await chooseMenuItem(page.getByRole("button", { name: /account and settings/ }), "Log out");
  await heading("Log in");
}

async function prepare() {
  await admin.login(stage.email, stage.password);
  const id = async (query: string, variables: Variables) =>
    Object.values<any>(Object.values<any>(await admin.graphql(query, variables))[0])[0].id;
  fixtures.domain = await id("mutation($input: CreateDomainInput!) { createDomain(input: $input) { domain { id } } }", {
    input: { name: domain },
  });
  fixtures.project = await id(
    "mutation($input: CreateProjectInput!) { createProject(input: $input) { project { id } } }",
    {
      input: { name: `lab-${run}`, domain: fixtures.domain },
    },
  );
  ada.id = await id("mutation($input: CreateUserInput!) { createUser(input: $input) { user { id } } }", {
    input: {
      email: ada.email,
      fullName: "Ada",
      password: `first ${run} password`,
      domain: fixtures.domain,
      projects: [fixtures.project],
    },
  });
  await admin.graphql("mutation($input: UpdateDomainInput!) { updateDomain(input: $input) { domain { id } } }", {
    input: { id: fixtures.domain, totpRequired: true, passwordMinLength: 14, signUp: "INVITATION" },
  });
  fixtures.policy = await id(
    "mutation($input: CreateResourcePolicyInput!) { createResourcePolicy(input: $input) { policy { id } } }",
    {
      input: {
        name: `acc-${run}`,
        totalSlots: { cpu: "8", mem: "16g" },
        maxSessions: 3,
        maxVfolders: 5,
        maxLogins: 4,
        maxPriority: 50,
      },
    },
  );
  await admin.graphql(
    "mutation($input: AttachResourcePolicyInput!) { attachResourcePolicy(input: $input) { attachment { id } } }",
    { input: { policy: fixtures.policy, user: ada.id } },
  );
  fixtures.role = await id("mutation($input: CreateRoleInput!) { createRole(input: $input) { role { id } } }", {
    input: {
      name: `watch-${run}`,
      description: "Watches over the lab",
      allows: [{ entity: "SESSION", operations: ["READ", "ENTER"] }],
    },
  });
  await admin.graphql("mutation($input: GrantRoleInput!) { grantRole(input: $input) { grant { id } } }", {
    input: { role: fixtures.role, user: ada.id, scope: "PROJECT", scopeId: fixtures.project },
  });
  const { resetUserPassword } = await admin.graphql(
    "mutation($input: ResetUserPasswordInput!) { resetUserPassword(input: $input) { password } }",
    { input: { user: ada.id } },
  );
  ada.password = recordSecret("a reset password", resetUserPassword.password);
}

/**
 * An invited user is logged in directly after the sign-up. The invitation is valid only for its e-mail address and
 * only once.
 */
async function signUpByInvitation() {
  await page.goto("/signup");
  await page.getByRole("heading", { name: /You need an invitation|Sign up/ }).waitFor();
  await checkPage("signup-invitation-needed");
  const { createInvitation } = await admin.graphql(
    "mutation($input: CreateInvitationInput!) { createInvitation(input: $input) { link } }",
    { input: { email: guest.email, domain: fixtures.domain, project: fixtures.project } },
  );
  await admin.graphql("mutation($input: UpdateDomainInput!) { updateDomain(input: $input) { domain { id } } }", {
    input: { id: fixtures.domain, totpRequired: false },
  });
  await page.goto("about:blank"); // a change of the fragment alone does not reload the page
  await page.goto(createInvitation.link);
  recordSecret("an invitation", createInvitation.link.split("#invitation=")[1]);
  await heading("Sign up");
  assert.equal(new URL(page.url()).hash, "", "the URL still contains the secret");
  await checkPage("signup-invited");
  await typeFields(guest.email, "Guest", "", "short");
  await page.locator('input[type="password"]').fill("too short");
  assert(await button("Sign up").isDisabled(), "the form accepts a short password");
  await page.locator('input[type="password"]').fill("only ten ch");
  await pressKey(page.locator('input[type="password"]'));
  await waitForText("must have at least 14 characters");
  await page.locator('input[type="password"]').fill(guest.password);
  await pressKey(page.locator('input[type="password"]'));
  await heading("Home");
  await logout();
  await page.goto("about:blank");
  await page.goto(createInvitation.link);
  recordSecret("an invitation", createInvitation.link.split("#invitation=")[1]);
  await heading("Sign up");
  await typeFields(guest.email, "Guest", "", guest.password);
  await page.getByRole("alert").waitFor();
}

/** Without an invitation, an administrator must approve the sign-up. */
async function signUpWithApproval() {
  await admin.graphql("mutation($input: UpdateDomainInput!) { updateDomain(input: $input) { domain { id } } }", {
    input: { id: fixtures.domain, signUp: "APPROVAL" },
  });
  await page.goto("about:blank");
  await page.goto("/signup");
  await heading("Sign up");
  const asksDomain = (await page.getByLabel("Domain").count()) > 0;
  await typeFields(applicant.email, "Wanda Waits", "", ...(asksDomain ? [domain] : []), applicant.password);
  await heading("Your sign-up is pending approval");
  await checkPage("signup-pending");
  await pressKey(page.getByRole("link", { name: "Back to login" }));
  await login(applicant);
  await page.getByRole("alert").getByText("Incorrect e-mail or password.").waitFor();
  const { users } = await admin.graphql(
    "query($where: UserWhereInput) { users(first: 1, where: $where) { edges { node { id status } } } }",
    { where: { email: applicant.email } },
  );
  assert.equal(users.edges[0].node.status, "BEFORE_VERIFICATION");
  await admin.graphql("mutation($input: UpdateUserInput!) { updateUser(input: $input) { user { id } } }", {
    input: { id: users.edges[0].node.id, status: "ACTIVE" },
  });
  await page.goto("/login");
  await login(applicant);
  await heading("Home");
  await logout();
  await admin.graphql("mutation($input: UpdateDomainInput!) { updateDomain(input: $input) { domain { id } } }", {
    input: { id: fixtures.domain, signUp: "OFF", totpRequired: true },
  });
}

/**
 * The required steps come before any other page: a password that an administrator set must be changed, then two-step
 * login must be set up.
 */
async function requiredSteps() {
  await page.goto("/account/limits");
  await heading("Log in");
  await checkPage("login");
  await login({ email: ada.email, password: "not the password" });
  await page.getByRole("alert").getByText("Incorrect e-mail or password.").waitFor();
  await page.locator('input[name="password"]').fill("");
  await page.locator('input[name="password"]').focus();
  await typeFields(ada.password);
  await heading("Choose a new password");
  await checkPage("due-password");
  await page.goto("/cluster");
  await heading("Choose a new password");
  // The reload has discarded the password that was typed at login.
  await field("Current password").focus();
  await typeFields(ada.password, ada.email, ada.email);
  await waitForText("must not be the e-mail or the username");
  ada.password = longPassword;
  await field("New password").fill(longPassword);
  await field("Repeat new password").fill(`${longPassword}!`);
  await waitForText("The passwords do not match.");
  await field("Repeat new password").fill(longPassword);
  await pressKey(field("Repeat new password"));
  await heading("Set up two-step login");
  await pressKey(button("Set up"));
  await page.getByRole("img", { name: /QR code/ }).waitFor();
  await checkPage("due-totp");
  ada.authenticator = new Authenticator(await page.locator(".key-text").innerText());
  await field("Code from the app").fill("000000");
  await pressKey(field("Code from the app"));
  await page.locator('[aria-invalid="true"]').waitFor();
  await page.keyboard.type(await ada.authenticator!.code());
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Save these recovery codes" }).waitFor();
  await checkPage("recovery-codes");
  ada.codes = await saveRecoveryCodes();
  await pressKey(button("Continue"));
  await heading("Cluster");
  await chooseMenuItem(page.getByRole("button", { name: /account and settings/ }), "Account");
  await heading("Profile");
}

/** Saves the recovery codes as a file and checks the print view, which contains only the codes. */
async function saveRecoveryCodes() {
  const file = await download(() => pressKey(button("Download")));
  assert.equal(file.name, "berth-recovery-codes.txt");
  const codes = await page.locator(".codes-list code").allTextContents();
  assert.deepEqual(file.text.trim().split("\n"), codes);
  assert(codes.length >= 8, `${codes.length} recovery codes instead of at least 8`);
  await page.evaluate(() => {
    Object.assign(globalThis, { print: () => Object.assign(globalThis, { printed: true }) });
  });
  await pressKey(button("Print"));
  assert(await page.evaluate(() => "printed" in globalThis), "the page was not printed");
  await page.emulateMedia({ media: "print" });
  assert.equal(
    await page
      .locator(".codes-list code")
      .first()
      .evaluate((c) => getComputedStyle(c).visibility),
    "visible",
  );
  await page.locator(".wordmark").first().waitFor({ state: "hidden" }); // only the codes are printed
  await stage.screenshot(page, "print", ["light"]);
  await page.emulateMedia({ media: null });
  for (const code of codes) recordSecret("a recovery code", code);
  return codes;
}

async function profile() {
  await waitForText("Watches over the lab");
  await waitForText("Sessions: see, connect to them");
  await waitForText(`in project lab-${run}`);
  await waitForText("the default user of the image");
  await checkPage("profile");
  await field("Full name").focus();
  await page.keyboard.press("Control+a");
  await typeFields("Ada Lovelace");
  await waitForText("Saved.");
  await page.getByRole("button", { name: /Ada Lovelace: account/ }).waitFor();
  await field("Allowed networks").fill("nowhere");
  await pressKey(button("Save"));
  await page.locator('textarea[aria-invalid="true"]').waitFor();
  await checkPage("profile-wrong");
  await page.getByText("Saved.").waitFor({ state: "detached" });
  await field("Allowed networks").fill("127.0.0.0/8\n::1");
  await pressKey(button("Save"));
  await waitForText("Saved.");
  await page.reload();
  await heading("Profile");
  assert.equal(await field("Allowed networks").inputValue(), "127.0.0.0/8\n::1/128");
  await admin.graphql("mutation($input: UpdateUserInput!) { updateUser(input: $input) { user { id } } }", {
    input: { id: ada.id, containerUid: 2001, containerGids: [44] },
  });
  await page.reload();
  await waitForText("uid 2001, gid 2001, groups 44");
}

async function password() {
  await openAccountPage("Password");
  await waitForText("At least 14 characters");
  await field("Current password").focus();
  await typeFields("not my password", `${longPassword} two`, `${longPassword} two`);
  await waitForText("is not the current password");
  await page.locator('input[aria-invalid="true"]:focus').waitFor();
  await checkPage("password");
  await field("Current password").fill(longPassword);
  await pressKey(field("Current password"));
  await waitForText("Password changed.");
  ada.password = `${longPassword} two`;
}

/** Logs in with a code of the authenticator app, with a recovery code, and with more logins than allowed. */
async function loginForm() {
  // After a new login, the user is back on the page where they logged out.
  await logout();
  await login(ada);
  await heading("Two-step login");
  await checkPage("second-step");
  await typeFields("123 456");
  await waitForText("The code is wrong or was already used.");
  await typeFields(await ada.authenticator!.code());
  await heading("Password");
  await logout();
  await login(ada, { code: ada.codes[0] });
  await heading("Password");
  await logout();
  await login(ada, { code: ada.codes[0] });
  await waitForText("The code is wrong or was already used.");
  const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0";
  for (const code of ada.codes.slice(1, 5)) await new Api(url, firefox).login(ada.email, ada.password, code);
  await typeFields(ada.codes[5]);
  await heading("Too many logins");
  await waitForText("You have 4 logins");
  await checkPage("too-many-logins");
  await pressKey(button("Revoke the oldest login and continue"));
  await heading("Password");
}

async function logins() {
  await page.goto("/account/logins");
  await heading("Logins");
  await row("this login")
    .getByText(/Chrome, Linux/)
    .waitFor();
  const others = page.locator(".rows > li").filter({ hasText: "Firefox, Linux" });
  await others.nth(2).waitFor();
  assert.equal(await others.count(), 3);
  await row("Revoked in favor of a newer login").first().waitFor();
  await checkPage("logins");
  await pressKey(others.first().getByRole("button", { name: /Revoke the login/ }));
  await dialog().getByText("must log in again").waitFor();
  await pressKey(dialog().getByRole("button", { name: "Revoke", exact: true }));
  await others.nth(2).waitFor({ state: "detached" });
  assert.equal(await others.count(), 2);
  // A login from another machine appears without a reload.
  await new Api(url, "curl/8.5.0").login(ada.email, ada.password, ada.codes[6]);
  await page.locator(".rows > li").filter({ hasText: "curl/8.5.0" }).waitFor({ timeout: 60_000 });
  await pressKey(button("Revoke all others"));
  await pressKey(dialog().getByRole("button", { name: "Revoke", exact: true }));
  await waitForText("3 logins were revoked.");
  await page.waitForFunction(() => document.querySelectorAll(".rows > li").length === 1);
  await page.getByText("Refused", { exact: true }).click();
  await row("Wrong code").first().waitFor();
  await row("Logged in").first().waitFor({ state: "detached" });
}

async function twoStepLogin() {
  await openAccountPage("Two-step login");
  await checkPage("second-step-on");
  await field("Code from your authenticator app, or a recovery code").fill(await ada.authenticator!.code());
  await pressKey(button("Generate new codes"));
  await page.getByRole("heading", { name: "Save these recovery codes" }).waitFor();
  const before = ada.codes;
  ada.codes = await saveRecoveryCodes();
  assert(!ada.codes.includes(before[7]), "an old recovery code is still valid");
  await pressKey(button("Done"));
  // The domain requires two-step login, so the user must set it up again immediately.
  await pressKey(button("Set up again…"));
  await field("Password", dialog()).fill("wrong");
  await dialog().getByLabel("Code from your").fill(ada.codes[0]);
  await pressKey(dialog().getByRole("button", { name: "Continue" }));
  await dialog().locator('[aria-invalid="true"]').waitFor();
  await checkPage("second-step-off");
  await field("Password", dialog()).fill(ada.password);
  await dialog().getByLabel("Code from your").fill(ada.codes[0]);
  await pressKey(dialog().getByRole("button", { name: "Continue" }));
  await heading("Set up two-step login");
  await admin.graphql("mutation($input: UpdateDomainInput!) { updateDomain(input: $input) { domain { id } } }", {
    input: { id: fixtures.domain, totpRequired: false },
  });
  await page.reload();
  await heading("Two-step login");
  await page.getByText("off", { exact: true }).waitFor();
  await checkPage("second-step-new");
  await pressKey(button("Set up"));
  ada.authenticator = new Authenticator(await page.locator(".key-text").innerText());
  await checkPage("second-step-enrol");
  await field("Code from the app").fill(await ada.authenticator!.code());
  await pressKey(field("Code from the app"));
  await page.getByRole("heading", { name: "Save these recovery codes" }).waitFor();
  ada.codes = await saveRecoveryCodes();
  await pressKey(button("Done"));
  await pressKey(button("Turn off…"));
  await field("Password", dialog()).fill(ada.password);
  await dialog().getByLabel("Code from your").fill(ada.codes[0]);
  await pressKey(dialog().getByRole("button", { name: "Turn off", exact: true }));
  await waitForText("Two-step login was turned off.");
  await button("Set up").waitFor();
}

async function tokens() {
  await openAccountPage("Access tokens");
  await waitForText("No tokens");
  await pressKey(button("New token"));
  await focused("Name");
  await page.keyboard.type("ci");
  await pressKey(dialog().getByLabel("folders"), "Space");
  await pressKey(dialog().getByLabel("sessions"), "Space");
  await dialog().getByLabel("Project access").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("option", { name: `only lab-${run}` }).click();
  await checkPage("token-new");
  await pressKey(dialog().getByRole("button", { name: "Create" }));
  const token = (await page.getByLabel("Token", { exact: true }).innerText()).trim();
  await row("ci").getByText(`only lab-${run}`).waitFor();
  await checkPage("token-made");
  const queryWithToken = () => new Api(url).bearer(token).graphql("{ viewer { user { email } } }");
  assert.equal((await queryWithToken()).viewer.user.email, ada.email);
  await assert.rejects(
    new Api(url).bearer(token).graphql('mutation { createSshKey(input: { name: "no" }) { sshKey { id } } }'),
    /PERMISSION_DENIED/,
  );
  await pressKey(button("I have saved it"));
  await page.getByLabel("Token", { exact: true }).waitFor({ state: "detached" });
  await page.reload();
  await row("ci").getByText(/used /).waitFor();
  assert(!(await page.locator("body").textContent())!.includes(token), "the secret is shown again");
  await pressKey(button("Revoke ci"));
  await pressKey(dialog().getByRole("button", { name: "Revoke" }));
  await waitForText("ci was revoked.");
  await row("only lab").waitFor({ state: "detached" });
  await assert.rejects(queryWithToken(), /UNAUTHENTICATED/);
}

async function keypairs() {
  await openAccountPage("Keypairs");
  const createKeypair = async (name: string) => {
    await pressKey(button("New keypair"));
    await focused("Name");
    await typeFields(name);
    const box = page.getByRole("region", { name: `The secret of ${name}` });
    const pair = {
      access: (await box.getByLabel("Access key", { exact: true }).innerText()).trim(),
      secret: (await box.getByLabel("Secret", { exact: true }).innerText()).trim(),
    };
    return pair;
  };
  const chooseAction = (name: string, what: string) => chooseMenuItem(button(`Edit ${name}`), what);
  const queryWithKeypair = (pair: { access: string; secret: string }) =>
    sendSigned(url, pair, "{ viewer { user { email } } }");
  const one = await createKeypair("robot");
  await row("robot").getByText("default", { exact: true }).waitFor();
  await row("robot").getByText("10,000 requests per 15 minutes").waitFor();
  await checkPage("keypair-made");
  assert.equal((await queryWithKeypair(one)).viewer.user.email, ada.email);
  await pressKey(button("I have saved it"));
  await chooseAction("robot", "Deactivate");
  await row("robot").getByText("inactive").waitFor();
  await assert.rejects(queryWithKeypair(one), /UNAUTHENTICATED/);
  await chooseAction("robot", "Activate");
  await row("robot").getByText("inactive").waitFor({ state: "detached" });
  await queryWithKeypair(one);
  await chooseAction("robot", "New secret…");
  await pressKey(dialog().getByRole("button", { name: "Create a new secret" }));
  const fresh = { ...one, secret: (await page.getByLabel("Secret", { exact: true }).innerText()).trim() };
  await assert.rejects(queryWithKeypair(one), /UNAUTHENTICATED/);
  await queryWithKeypair(fresh);
  await createKeypair("second");
  await chooseAction("second", "Make default");
  await row("second").getByText("default", { exact: true }).waitFor();
  await row("robot").getByText("default", { exact: true }).waitFor({ state: "detached" });
  await chooseAction("second", "Delete…");
  await pressKey(dialog().getByRole("button", { name: "Delete" }));
  await dialog().getByText("make another one the default first").waitFor();
  await checkPage("keypair-refused");
  await page.keyboard.press("Escape");
  await chooseAction("second", "Edit…");
  await dialog().getByLabel("Name").fill("backup");
  await page.keyboard.press("Enter");
  await row("backup").waitFor();
  await checkPage("keypairs");
  await chooseAction("robot", "Delete…");
  await pressKey(dialog().getByRole("button", { name: "Delete" }));
  await waitForText("robot was deleted.");
  await assert.rejects(queryWithKeypair(fresh), /UNAUTHENTICATED/);
}

async function sshKeys() {
  await openAccountPage("SSH keys");
  await pressKey(button("Generate a key"));
  await focused("Name");
  await typeFields("my laptop");
  await page.getByRole("region", { name: "The private key of my laptop" }).waitFor();
  await checkPage("ssh-made");
  const key = await download(() => pressKey(button("Download berth_my_laptop")));
  assert.match(key.text, /^-----BEGIN OPENSSH PRIVATE KEY-----\n/);
  await pressKey(button("I have saved it"));
  const publicKey = await download(() => pressKey(button("Download the public key of my laptop")));
  assert.equal(publicKey.name, "berth_my_laptop.pub");
  const shown = await row("my laptop").locator("code").textContent();
  assert.equal(shown, fingerprint(publicKey.text));
  // The file of the private key also contains the public key.
  assert(
    Buffer.from(key.text.replace(/-----.*-----|\s/g, ""), "base64").includes(
      Buffer.from(publicKey.text.split(" ")[1], "base64"),
    ),
    "the private key does not match the public key",
  );
  await pressKey(button("Add your own"));
  const text = field("Public key", dialog());
  await text.fill(key.text);
  await waitForText("This is a private key.");
  assert(await dialog().getByRole("button", { name: "Add" }).isDisabled());
  await text.fill("ssh-ed25519 nonsense");
  await dialog().getByLabel("Name").fill("own");
  await pressKey(dialog().getByRole("button", { name: "Add" }));
  await dialog().locator('[aria-invalid="true"]').waitFor();
  await checkPage("ssh-own");
  const own = publicLine("ada@home");
  await dialog().getByLabel("Name").fill("");
  await dialog()
    .locator('input[type="file"]')
    .setInputFiles({ name: "id_ed25519.pub", mimeType: "text/plain", buffer: Buffer.from(`${own}\n`) });
  await page.waitForFunction(
    () => document.querySelector<HTMLInputElement>('[role="dialog"] input[maxlength]')?.value === "ada-home",
  );
  await pressKey(dialog().getByRole("button", { name: "Add" }));
  await row("ada-home").getByText(fingerprint(own)).waitFor();
  await checkPage("ssh-keys");
  await pressKey(button("Delete my laptop"));
  await pressKey(dialog().getByRole("button", { name: "Delete" }));
  await waitForText("my laptop was deleted.");
  await row("my laptop").waitFor({ state: "detached" });
}

const fingerprint = (line: string) =>
  `SHA256:${createHash("sha256")
    .update(Buffer.from(line.split(" ")[1], "base64"))
    .digest("base64")
    .replace(/=+$/, "")}`;

function publicLine(comment: string) {
  const raw = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "der" }).subarray(-32);
  const part = (bytes: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);
  return `ssh-ed25519 ${Buffer.concat([part(Buffer.from("ssh-ed25519")), part(raw)]).toString("base64")} ${comment}`;
}

async function limits() {
  await openAccountPage("My limits");
  for (const [what, limit] of [
    ["CPU", "8"],
    ["Memory", "16 GiB"],
    ["Concurrent sessions", "3"],
    ["Folders", "5"],
    ["Concurrent logins", "4"],
  ]) {
    const line = page.getByRole("row").filter({ has: page.getByRole("cell", { name: what, exact: true }) });
    await line.getByRole("cell", { name: limit, exact: true }).first().waitFor();
    await line.getByText(`acc-${run}`).waitFor();
  }
  await page
    .getByRole("region", { name: "My resource groups" })
    .getByText(/^open /)
    .first()
    .waitFor();
  await checkPage("limits");
}

async function activity() {
  await openAccountPage("Activity");
  await row("Create SSH key").first().waitFor();
  await row("Rotate keypair").getByText("Done").first().waitFor();
  await row("Reset user password").getByText(`by ${stage.email}`).first().waitFor();
  await checkPage("activity");
  await page.getByText("Failed", { exact: true }).click();
  await row("Create SSH key").getByText("Invalid input").first().waitFor();
  await row("Done").first().waitFor({ state: "detached" });
  await page.getByText("By others", { exact: true }).click();
  await row("Reset user password").first().waitFor();
  await row("Create SSH key").first().waitFor({ state: "detached" });
}

/** When an administrator deactivates a user, the user's open page returns to the login page. */
async function deactivation() {
  await admin.graphql("mutation($input: UpdateUserInput!) { updateUser(input: $input) { user { id } } }", {
    input: { id: ada.id, status: "INACTIVE" },
  });
  await heading("Log in");
  assert.equal(new URL(page.url()).searchParams.get("next"), "/account/activity");
}

/** Login with an identity provider: the page explains why the provider rejected the login. */
async function identityProviders() {
  const { createIdentityProvider } = await admin.graphql(
    "mutation($input: CreateIdentityProviderInput!) { createIdentityProvider(input: $input) { identityProvider { id } } }",
    {
      input: {
        name: `acc-${run}`,
        displayName: `Campus ${run}`,
        issuer: "http://127.0.0.1:9",
        clientID: "berth",
        clientSecret: recordSecret("a client secret", `client ${run} secret`),
        domain: fixtures.domain,
      },
    },
  );
  fixtures.provider = createIdentityProvider.identityProvider.id;
  await page.goto("/login?error=too_many_logins&request=r-1");
  await page.getByRole("link", { name: `Revoke the oldest login and log in with Campus ${run}` }).waitFor();
  await page.goto("/login?next=%2Fcluster");
  const link = page.getByRole("link", { name: `Log in with Campus ${run}` });
  await link.waitFor();
  await checkPage("login-providers");
  await pressKey(link);
  await waitForText("Your identity provider does not respond correctly.");
  await checkPage("login-provider-refused");
}

/** After too many failed logins, the user must wait, and the page shows how long. */
async function loginThrottling() {
  const unknownUser = { email: `nobody-${run}@example.org`, password: "whatever it is" };
  // The limit is ten failed logins per address; it is reached earlier if other tests used some of them.
  for (let i = 0; i < 10; i++)
    await assert.rejects(
      new Api(url).login(unknownUser.email, unknownUser.password),
      /UNAUTHENTICATED|RESOURCE_EXHAUSTED/,
    );
  await page.goto("/login");
  await login(unknownUser);
  await waitForText(/Too many attempts. You can try again in \d+ (min|s)/);
  assert(await button("Log in").isDisabled());
  await checkPage("login-throttled");
}

/** Removes what other users of the cluster would see: the identity provider, the role and the sign-up. */
async function cleanUp() {
  if (fixtures.provider)
    await admin.graphql(
      "mutation($input: DeleteIdentityProviderInput!) { deleteIdentityProvider(input: $input) { identityProvider { id } } }",
      { input: { id: fixtures.provider } },
    );
  if (fixtures.role)
    await admin.graphql("mutation($input: DeleteRoleInput!) { deleteRole(input: $input) { id } }", {
      input: { id: fixtures.role },
    });
  if (fixtures.domain)
    await admin.graphql("mutation($input: UpdateDomainInput!) { updateDomain(input: $input) { domain { id } } }", {
      input: { id: fixtures.domain, signUp: "OFF", active: false },
    });
}

// The browser logs each request that the test makes fail on purpose.
await runSteps(
  stage,
  [
    ["create the domain and the user", prepare],
    ["sign up with an invitation", signUpByInvitation],
    ["sign up with approval", signUpWithApproval],
    ["do the required steps after the first login", requiredSteps],
    ["change the profile", profile],
    ["change the password", password],
    ["log in with two-step login", loginForm],
    ["revoke logins", logins],
    ["set up and turn off two-step login", twoStepLogin],
    ["create and revoke an access token", tokens],
    ["create and change keypairs", keypairs],
    ["create, add and delete SSH keys", sshKeys],
    ["show the effective limits", limits],
    ["log in a program by a code", () => deviceLogin(stage)],
    ["show the activity", activity],
    ["log out after a deactivation", deactivation],
    ["log in with an identity provider", identityProviders],
    ["throttle failed logins", loginThrottling],
  ],
  { cleanUp, expected: /status of 4\d\d/ },
);
