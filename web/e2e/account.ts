// Browser test of the login page and the account pages, as a new user. It needs a running cluster:
//   BERTH_URL=http://… BERTH_EMAIL=… BERTH_PASSWORD=… node --import ./e2e/typescript.mjs e2e/account.ts
// The credentials must be those of a superadmin. BERTH_SHOTS names a directory for screenshots.

import assert from "node:assert/strict";
import { createHash, generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import type { Variables } from "./account/api.ts";
import { Api, Authenticator, secret, signed } from "./account/api.ts";
import type { Text } from "./stage.ts";
import { begin, walk } from "./stage.ts";

const stage = await begin();
const { run, url, page, look, admin, button, heading, row } = stage;
const domain = `acc-${run}`;
interface Person {
  id?: string;
  email: string;
  password: string;
  /** The authenticator app, after two-step login is set up. */
  app: Authenticator | null;
  codes: string[];
}

const ada: Person = { email: `ada-${run}@example.org`, password: "", app: null, codes: [] };
const guest = { email: `guest-${run}@example.org`, password: `guest ${run} password` };
const waiting = { email: `wait-${run}@example.org`, password: `wait ${run} password` };
const long = `ada ${run} long password`;

const made: Record<string, any> = {};

const field = (name: string, within: Page | Locator = page) => stage.field(within, name);
/** Waits until a field has the focus. A dialog focuses its first field after it has opened. */
const focused = (name: string) => field(name).and(page.locator(":focus")).waitFor();
const says = (text: Text) => page.getByText(text).first().waitFor();
const dialog = () => page.getByRole("dialog");

/** Focuses a control and presses a key. */
async function press(locator: Locator, key = "Enter") {
  await locator.focus();
  await page.keyboard.press(key);
}

/** Types each text into a field and presses Tab between them, then Enter, as a user without a mouse. */
async function type(...texts: string[]) {
  for (const [i, text] of texts.entries()) {
    if (i > 0) await page.keyboard.press("Tab");
    await page.keyboard.type(text);
  }
  await page.keyboard.press("Enter");
}

async function go(name: string) {
  await press(page.getByRole("navigation", { name: "Account pages" }).getByRole("link", { name, exact: true }));
  await heading(name);
}

/** Opens a menu and selects an item with the arrow keys. */
async function choose(target: Locator, name: string) {
  const item = page.getByRole("menuitem", { name, exact: true });
  await press(target);
  await item.waitFor();
  for (let i = 0; i < 20 && !(await item.evaluate((e) => e === document.activeElement)); i++)
    await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await item.waitFor({ state: "detached" });
}

/** Waits for a download and returns its file name and text. */
async function downloaded(act: () => unknown) {
  const [file] = await Promise.all([page.waitForEvent("download"), act()]);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
}

async function enter(who: { email: string; password: string }, { code }: { code?: string } = {}) {
  await heading("Log in");
  await page.getByLabel("E-mail").focus();
  await page.keyboard.type(who.email);
  await page.locator('input[name="password"]').focus();
  await type(who.password);
  if (!code) return;
  await heading("Two-step login");
  await type(code);
}

async function leave() {
  await choose(page.getByRole("button", { name: /account and settings/ }), "Log out");
  await heading("Log in");
}

async function prepare() {
  await admin.login(stage.email, stage.password);
  const id = async (query: string, variables: Variables) =>
    Object.values<any>(Object.values<any>(await admin.ask(query, variables))[0])[0].id;
  made.domain = await id("mutation($input: CreateDomainInput!) { createDomain(input: $input) { domain { id } } }", {
    input: { name: domain },
  });
  made.project = await id("mutation($input: CreateProjectInput!) { createProject(input: $input) { project { id } } }", {
    input: { name: `lab-${run}`, domain: made.domain },
  });
  ada.id = await id("mutation($input: CreateUserInput!) { createUser(input: $input) { user { id } } }", {
    input: {
      email: ada.email,
      fullName: "Ada",
      password: `first ${run} password`,
      domain: made.domain,
      projects: [made.project],
    },
  });
  await admin.ask("mutation($input: UpdateDomainInput!) { updateDomain(input: $input) { domain { id } } }", {
    input: { id: made.domain, totpRequired: true, passwordMinLength: 14, signUp: "INVITATION" },
  });
  made.policy = await id(
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
  await admin.ask(
    "mutation($input: AttachResourcePolicyInput!) { attachResourcePolicy(input: $input) { attachment { id } } }",
    { input: { policy: made.policy, user: ada.id } },
  );
  made.role = await id("mutation($input: CreateRoleInput!) { createRole(input: $input) { role { id } } }", {
    input: {
      name: `watch-${run}`,
      description: "Watches over the lab",
      allows: [{ entity: "SESSION", operations: ["READ", "ENTER"] }],
    },
  });
  await admin.ask("mutation($input: GrantRoleInput!) { grantRole(input: $input) { grant { id } } }", {
    input: { role: made.role, user: ada.id, scope: "PROJECT", scopeId: made.project },
  });
  const { resetUserPassword } = await admin.ask(
    "mutation($input: ResetUserPasswordInput!) { resetUserPassword(input: $input) { password } }",
    { input: { user: ada.id } },
  );
  ada.password = secret("a password that was reset", resetUserPassword.password);
}

/**
 * An invited user is logged in directly after the sign-up. The invitation is valid only for its e-mail address and
 * only once.
 */
async function invited() {
  await page.goto("/signup");
  await page.getByRole("heading", { name: /You need an invitation|Sign up/ }).waitFor();
  await look("signup-invitation-needed");
  const { createInvitation } = await admin.ask(
    "mutation($input: CreateInvitationInput!) { createInvitation(input: $input) { link } }",
    { input: { email: guest.email, domain: made.domain, project: made.project } },
  );
  await admin.ask("mutation($input: UpdateDomainInput!) { updateDomain(input: $input) { domain { id } } }", {
    input: { id: made.domain, totpRequired: false },
  });
  await page.goto("about:blank"); // a change of the fragment alone does not reload the page
  await page.goto(createInvitation.link);
  secret("an invitation", createInvitation.link.split("#invitation=")[1]);
  await heading("Sign up");
  assert.equal(new URL(page.url()).hash, "", "the secret stays in the address");
  await look("signup-invited");
  await type(guest.email, "Guest", "", "short");
  await page.locator('input[type="password"]').fill("too short");
  assert(await button("Sign up").isDisabled(), "a short password can be sent");
  await page.locator('input[type="password"]').fill("only ten ch");
  await press(page.locator('input[type="password"]'));
  await says("must have at least 14 characters");
  await page.locator('input[type="password"]').fill(guest.password);
  await press(page.locator('input[type="password"]'));
  await heading("Home");
  await leave();
  await page.goto("about:blank");
  await page.goto(createInvitation.link);
  secret("an invitation", createInvitation.link.split("#invitation=")[1]);
  await heading("Sign up");
  await type(guest.email, "Guest", "", guest.password);
  await page.getByRole("alert").waitFor();
}

/** Without an invitation, an administrator must approve the sign-up. */
async function approval() {
  await admin.ask("mutation($input: UpdateDomainInput!) { updateDomain(input: $input) { domain { id } } }", {
    input: { id: made.domain, signUp: "APPROVAL" },
  });
  await page.goto("about:blank");
  await page.goto("/signup");
  await heading("Sign up");
  const named = (await page.getByLabel("Domain").count()) > 0;
  await type(waiting.email, "Wanda Waits", "", ...(named ? [domain] : []), waiting.password);
  await heading("Your sign-up is pending approval");
  await look("signup-pending");
  await press(page.getByRole("link", { name: "Back to login" }));
  await enter(waiting);
  await page.getByRole("alert").getByText("Incorrect e-mail or password.").waitFor();
  const { users } = await admin.ask(
    "query($where: UserWhereInput) { users(first: 1, where: $where) { edges { node { id status } } } }",
    { where: { email: waiting.email } },
  );
  assert.equal(users.edges[0].node.status, "BEFORE_VERIFICATION");
  await admin.ask("mutation($input: UpdateUserInput!) { updateUser(input: $input) { user { id } } }", {
    input: { id: users.edges[0].node.id, status: "ACTIVE" },
  });
  await page.goto("/login");
  await enter(waiting);
  await heading("Home");
  await leave();
  await admin.ask("mutation($input: UpdateDomainInput!) { updateDomain(input: $input) { domain { id } } }", {
    input: { id: made.domain, signUp: "OFF", totpRequired: true },
  });
}

/**
 * The required steps come before any other page: a password that an administrator set must be changed, then two-step
 * login must be set up.
 */
async function due() {
  await page.goto("/account/limits");
  await heading("Log in");
  await look("login");
  await enter({ email: ada.email, password: "not the password" });
  await page.getByRole("alert").getByText("Incorrect e-mail or password.").waitFor();
  await page.locator('input[name="password"]').fill("");
  await page.locator('input[name="password"]').focus();
  await type(ada.password);
  await heading("Choose a new password");
  await look("due-password");
  await page.goto("/cluster");
  await heading("Choose a new password");
  // The reload has discarded the password that was typed at login.
  await field("Current password").focus();
  await type(ada.password, ada.email, ada.email);
  await says("must not be the e-mail or the username");
  ada.password = long;
  await field("New password").fill(long);
  await field("Repeat new password").fill(`${long}!`);
  await says("The passwords do not match.");
  await field("Repeat new password").fill(long);
  await press(field("Repeat new password"));
  await heading("Set up two-step login");
  await press(button("Set up"));
  await page.getByRole("img", { name: /QR code/ }).waitFor();
  await look("due-totp");
  ada.app = new Authenticator(await page.locator(".key-text").innerText());
  await field("Code from the app").fill("000000");
  await press(field("Code from the app"));
  await page.locator('[aria-invalid="true"]').waitFor();
  await page.keyboard.type(await ada.app!.code());
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Save these recovery codes" }).waitFor();
  await look("recovery-codes");
  ada.codes = await keptCodes();
  await press(button("Continue"));
  await heading("Cluster");
  await choose(page.getByRole("button", { name: /account and settings/ }), "Account");
  await heading("Profile");
}

/** Saves the recovery codes as a file and checks the print view, which contains only the codes. */
async function keptCodes() {
  const file = await downloaded(() => press(button("Download")));
  assert.equal(file.name, "berth-recovery-codes.txt");
  const codes = await page.locator(".codes-list code").allTextContents();
  assert.deepEqual(file.text.trim().split("\n"), codes);
  assert(codes.length >= 8, `${codes.length} codes`);
  await page.evaluate(() => {
    Object.assign(globalThis, { print: () => Object.assign(globalThis, { printed: true }) });
  });
  await press(button("Print"));
  assert(await page.evaluate(() => "printed" in globalThis), "nothing was printed");
  await page.emulateMedia({ media: "print" });
  assert.equal(
    await page
      .locator(".codes-list code")
      .first()
      .evaluate((c) => getComputedStyle(c).visibility),
    "visible",
  );
  await page.locator(".wordmark").first().waitFor({ state: "hidden" }); // only the codes are printed
  await stage.shoot(page, "print", ["light"]);
  await page.emulateMedia({ media: null });
  for (const code of codes) secret("a recovery code", code);
  return codes;
}

async function profile() {
  await says("Watches over the lab");
  await says("Sessions: see, connect to them");
  await says(`in project lab-${run}`);
  await says("the default user of the image");
  await look("profile");
  await field("Full name").focus();
  await page.keyboard.press("Control+a");
  await type("Ada Lovelace");
  await says("Saved.");
  await page.getByRole("button", { name: /Ada Lovelace: account/ }).waitFor();
  await field("Allowed networks").fill("nowhere");
  await press(button("Save"));
  await page.locator('textarea[aria-invalid="true"]').waitFor();
  await look("profile-wrong");
  await page.getByText("Saved.").waitFor({ state: "detached" });
  await field("Allowed networks").fill("127.0.0.0/8\n::1");
  await press(button("Save"));
  await says("Saved.");
  await page.reload();
  await heading("Profile");
  assert.equal(await field("Allowed networks").inputValue(), "127.0.0.0/8\n::1/128");
  await admin.ask("mutation($input: UpdateUserInput!) { updateUser(input: $input) { user { id } } }", {
    input: { id: ada.id, containerUid: 2001, containerGids: [44] },
  });
  await page.reload();
  await says("uid 2001, gid 2001, groups 44");
}

async function password() {
  await go("Password");
  await says("At least 14 characters");
  await field("Current password").focus();
  await type("not my password", `${long} two`, `${long} two`);
  await says("is not the current password");
  await page.locator('input[aria-invalid="true"]:focus').waitFor();
  await look("password");
  await field("Current password").fill(long);
  await press(field("Current password"));
  await says("Password changed.");
  ada.password = `${long} two`;
}

/** Logs in with a code of the authenticator app, with a recovery code, and with more logins than allowed. */
async function door() {
  // After a new login, the user is back on the page where they logged out.
  await leave();
  await enter(ada);
  await heading("Two-step login");
  await look("second-step");
  await type("123 456");
  await says("The code is wrong or was already used.");
  await type(await ada.app!.code());
  await heading("Password");
  await leave();
  await enter(ada, { code: ada.codes[0] });
  await heading("Password");
  await leave();
  await enter(ada, { code: ada.codes[0] });
  await says("The code is wrong or was already used.");
  const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0";
  for (const code of ada.codes.slice(1, 5)) await new Api(url, firefox).login(ada.email, ada.password, code);
  await type(ada.codes[5]);
  await heading("Too many logins");
  await says("You have 4 logins");
  await look("too-many-logins");
  await press(button("Revoke the oldest login and continue"));
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
  await look("logins");
  await press(others.first().getByRole("button", { name: /Revoke the login/ }));
  await dialog().getByText("must log in again").waitFor();
  await press(dialog().getByRole("button", { name: "Revoke", exact: true }));
  await others.nth(2).waitFor({ state: "detached" });
  assert.equal(await others.count(), 2);
  // A login from another machine appears without a reload.
  await new Api(url, "curl/8.5.0").login(ada.email, ada.password, ada.codes[6]);
  await page.locator(".rows > li").filter({ hasText: "curl/8.5.0" }).waitFor({ timeout: 60_000 });
  await press(button("Revoke all others"));
  await press(dialog().getByRole("button", { name: "Revoke", exact: true }));
  await says("3 logins were revoked.");
  await page.waitForFunction(() => document.querySelectorAll(".rows > li").length === 1);
  await page.getByText("Refused", { exact: true }).click();
  await row("Wrong code").first().waitFor();
  await row("Logged in").first().waitFor({ state: "detached" });
}

async function secondStep() {
  await go("Two-step login");
  await look("second-step-on");
  await field("Code from your authenticator app, or a recovery code").fill(await ada.app!.code());
  await press(button("Generate new codes"));
  await page.getByRole("heading", { name: "Save these recovery codes" }).waitFor();
  const before = ada.codes;
  ada.codes = await keptCodes();
  assert(!ada.codes.includes(before[7]), "an old code is still there");
  await press(button("Done"));
  // The domain requires two-step login, so the user must set it up again immediately.
  await press(button("Set up again…"));
  await field("Password", dialog()).fill("wrong");
  await dialog().getByLabel("Code from your").fill(ada.codes[0]);
  await press(dialog().getByRole("button", { name: "Continue" }));
  await dialog().locator('[aria-invalid="true"]').waitFor();
  await look("second-step-off");
  await field("Password", dialog()).fill(ada.password);
  await dialog().getByLabel("Code from your").fill(ada.codes[0]);
  await press(dialog().getByRole("button", { name: "Continue" }));
  await heading("Set up two-step login");
  await admin.ask("mutation($input: UpdateDomainInput!) { updateDomain(input: $input) { domain { id } } }", {
    input: { id: made.domain, totpRequired: false },
  });
  await page.reload();
  await heading("Two-step login");
  await page.getByText("off", { exact: true }).waitFor();
  await look("second-step-new");
  await press(button("Set up"));
  ada.app = new Authenticator(await page.locator(".key-text").innerText());
  await look("second-step-enrol");
  await field("Code from the app").fill(await ada.app!.code());
  await press(field("Code from the app"));
  await page.getByRole("heading", { name: "Save these recovery codes" }).waitFor();
  ada.codes = await keptCodes();
  await press(button("Done"));
  await press(button("Turn off…"));
  await field("Password", dialog()).fill(ada.password);
  await dialog().getByLabel("Code from your").fill(ada.codes[0]);
  await press(dialog().getByRole("button", { name: "Turn off", exact: true }));
  await says("Two-step login was turned off.");
  await button("Set up").waitFor();
}

async function tokens() {
  await go("Access tokens");
  await says("No tokens");
  await press(button("New token"));
  await focused("Name");
  await page.keyboard.type("ci");
  await press(dialog().getByLabel("folders"), "Space");
  await press(dialog().getByLabel("sessions"), "Space");
  await dialog().getByLabel("Project access").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("option", { name: `only lab-${run}` }).click();
  await look("token-new");
  await press(dialog().getByRole("button", { name: "Create" }));
  const token = (await page.getByLabel("Token", { exact: true }).innerText()).trim();
  await row("ci").getByText(`only lab-${run}`).waitFor();
  await look("token-made");
  const asked = () => new Api(url).bearer(token).ask("{ viewer { user { email } } }");
  assert.equal((await asked()).viewer.user.email, ada.email);
  await assert.rejects(
    new Api(url).bearer(token).ask('mutation { createSshKey(input: { name: "no" }) { sshKey { id } } }'),
    /PERMISSION_DENIED/,
  );
  await press(button("I have saved it"));
  await page.getByLabel("Token", { exact: true }).waitFor({ state: "detached" });
  await page.reload();
  await row("ci").getByText(/used /).waitFor();
  assert(!(await page.locator("body").textContent())!.includes(token), "the secret is shown again");
  await press(button("Revoke ci"));
  await press(dialog().getByRole("button", { name: "Revoke" }));
  await says("ci was revoked.");
  await row("only lab").waitFor({ state: "detached" });
  await assert.rejects(asked(), /UNAUTHENTICATED/);
}

async function keypairs() {
  await go("Keypairs");
  const make = async (name: string) => {
    await press(button("New keypair"));
    await focused("Name");
    await type(name);
    const box = page.getByRole("region", { name: `The secret of ${name}` });
    const pair = {
      access: (await box.getByLabel("Access key", { exact: true }).innerText()).trim(),
      secret: (await box.getByLabel("Secret", { exact: true }).innerText()).trim(),
    };
    return pair;
  };
  const change = (name: string, what: string) => choose(button(`Edit ${name}`), what);
  const works = (pair: { access: string; secret: string }) => signed(url, pair, "{ viewer { user { email } } }");
  const one = await make("robot");
  await row("robot").getByText("default", { exact: true }).waitFor();
  await row("robot").getByText("10,000 requests per 15 minutes").waitFor();
  await look("keypair-made");
  assert.equal((await works(one)).viewer.user.email, ada.email);
  await press(button("I have saved it"));
  await change("robot", "Deactivate");
  await row("robot").getByText("inactive").waitFor();
  await assert.rejects(works(one), /UNAUTHENTICATED/);
  await change("robot", "Activate");
  await row("robot").getByText("inactive").waitFor({ state: "detached" });
  await works(one);
  await change("robot", "New secret…");
  await press(dialog().getByRole("button", { name: "Create a new secret" }));
  const fresh = { ...one, secret: (await page.getByLabel("Secret", { exact: true }).innerText()).trim() };
  await assert.rejects(works(one), /UNAUTHENTICATED/);
  await works(fresh);
  await make("second");
  await change("second", "Make default");
  await row("second").getByText("default", { exact: true }).waitFor();
  await row("robot").getByText("default", { exact: true }).waitFor({ state: "detached" });
  await change("second", "Delete…");
  await press(dialog().getByRole("button", { name: "Delete" }));
  await dialog().getByText("make another one the default first").waitFor();
  await look("keypair-refused");
  await page.keyboard.press("Escape");
  await change("second", "Edit…");
  await dialog().getByLabel("Name").fill("backup");
  await page.keyboard.press("Enter");
  await row("backup").waitFor();
  await look("keypairs");
  await change("robot", "Delete…");
  await press(dialog().getByRole("button", { name: "Delete" }));
  await says("robot was deleted.");
  await assert.rejects(works(fresh), /UNAUTHENTICATED/);
}

async function sshKeys() {
  await go("SSH keys");
  await press(button("Generate a key"));
  await focused("Name");
  await type("my laptop");
  await page.getByRole("region", { name: "The private key of my laptop" }).waitFor();
  await look("ssh-made");
  const key = await downloaded(() => press(button("Download berth_my_laptop")));
  assert.match(key.text, /^-----BEGIN OPENSSH PRIVATE KEY-----\n/);
  await press(button("I have saved it"));
  const half = await downloaded(() => press(button("Download the public key of my laptop")));
  assert.equal(half.name, "berth_my_laptop.pub");
  const shown = await row("my laptop").locator("code").textContent();
  assert.equal(shown, fingerprint(half.text));
  // The file of the private key also contains the public key.
  assert(
    Buffer.from(key.text.replace(/-----.*-----|\s/g, ""), "base64").includes(
      Buffer.from(half.text.split(" ")[1], "base64"),
    ),
    "another key",
  );
  await press(button("Add your own"));
  const text = field("Public key", dialog());
  await text.fill(key.text);
  await says("This is a private key.");
  assert(await dialog().getByRole("button", { name: "Add" }).isDisabled());
  await text.fill("ssh-ed25519 nonsense");
  await dialog().getByLabel("Name").fill("own");
  await press(dialog().getByRole("button", { name: "Add" }));
  await dialog().locator('[aria-invalid="true"]').waitFor();
  await look("ssh-own");
  const own = publicLine("ada@home");
  await dialog().getByLabel("Name").fill("");
  await dialog()
    .locator('input[type="file"]')
    .setInputFiles({ name: "id_ed25519.pub", mimeType: "text/plain", buffer: Buffer.from(`${own}\n`) });
  await page.waitForFunction(
    () => document.querySelector<HTMLInputElement>('[role="dialog"] input[maxlength]')?.value === "ada-home",
  );
  await press(dialog().getByRole("button", { name: "Add" }));
  await row("ada-home").getByText(fingerprint(own)).waitFor();
  await look("ssh-keys");
  await press(button("Delete my laptop"));
  await press(dialog().getByRole("button", { name: "Delete" }));
  await says("my laptop was deleted.");
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
  await go("My limits");
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
  await look("limits");
}

async function activity() {
  await go("Activity");
  await row("Create SSH key").first().waitFor();
  await row("Rotate keypair").getByText("Done").first().waitFor();
  await row("Reset user password").getByText(`by ${stage.email}`).first().waitFor();
  await look("activity");
  await page.getByText("Failed", { exact: true }).click();
  await row("Create SSH key").getByText("Invalid input").first().waitFor();
  await row("Done").first().waitFor({ state: "detached" });
  await page.getByText("By others", { exact: true }).click();
  await row("Reset user password").first().waitFor();
  await row("Create SSH key").first().waitFor({ state: "detached" });
}

/** When an administrator deactivates a user, the user's open page returns to the login page. */
async function ends() {
  await admin.ask("mutation($input: UpdateUserInput!) { updateUser(input: $input) { user { id } } }", {
    input: { id: ada.id, status: "INACTIVE" },
  });
  await heading("Log in");
  assert.equal(new URL(page.url()).searchParams.get("next"), "/account/activity");
}

/** Login with an identity provider: the page explains why the provider rejected the login. */
async function providers() {
  const { createIdentityProvider } = await admin.ask(
    "mutation($input: CreateIdentityProviderInput!) { createIdentityProvider(input: $input) { identityProvider { id } } }",
    {
      input: {
        name: `acc-${run}`,
        displayName: `Campus ${run}`,
        issuer: "http://127.0.0.1:9",
        clientID: "berth",
        clientSecret: secret("a client secret", `client ${run} secret`),
        domain: made.domain,
      },
    },
  );
  made.provider = createIdentityProvider.identityProvider.id;
  await page.goto("/login?error=too_many_logins&request=r-1");
  await page.getByRole("link", { name: `Revoke the oldest login and log in with Campus ${run}` }).waitFor();
  await page.goto("/login?next=%2Fcluster");
  const link = page.getByRole("link", { name: `Log in with Campus ${run}` });
  await link.waitFor();
  await look("login-providers");
  await press(link);
  await says("Your identity provider does not respond correctly.");
  await look("login-provider-refused");
}

/** After too many failed logins, the user must wait, and the page shows how long. */
async function throttled() {
  const nobody = { email: `nobody-${run}@example.org`, password: "whatever it is" };
  // The limit is ten failed logins per address; it is reached earlier if other tests used some of them.
  for (let i = 0; i < 10; i++)
    await assert.rejects(new Api(url).login(nobody.email, nobody.password), /UNAUTHENTICATED|RESOURCE_EXHAUSTED/);
  await page.goto("/login");
  await enter(nobody);
  await says(/Too many attempts. You can try again in \d+ (min|s)/);
  assert(await button("Log in").isDisabled());
  await look("login-throttled");
}

/** Removes what other users of the cluster would see: the identity provider, the role and the sign-up. */
async function sweep() {
  if (made.provider)
    await admin.ask(
      "mutation($input: DeleteIdentityProviderInput!) { deleteIdentityProvider(input: $input) { identityProvider { id } } }",
      { input: { id: made.provider } },
    );
  if (made.role)
    await admin.ask("mutation($input: DeleteRoleInput!) { deleteRole(input: $input) { id } }", {
      input: { id: made.role },
    });
  if (made.domain)
    await admin.ask("mutation($input: UpdateDomainInput!) { updateDomain(input: $input) { domain { id } } }", {
      input: { id: made.domain, signUp: "OFF", active: false },
    });
}

// The browser logs each request that the test makes fail on purpose.
await walk(
  stage,
  [
    ["prepare", prepare],
    ["sign up by invitation", invited],
    ["sign up with approval", approval],
    ["what is due", due],
    ["profile", profile],
    ["password", password],
    ["the door", door],
    ["logins", logins],
    ["second step", secondStep],
    ["tokens", tokens],
    ["keypairs", keypairs],
    ["SSH keys", sshKeys],
    ["limits", limits],
    ["activity", activity],
    ["shut out", ends],
    ["providers", providers],
    ["throttled", throttled],
  ],
  { sweep, expected: /status of 4\d\d/ },
);
