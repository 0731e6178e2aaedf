import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { list } from "../../testing/api";
import { stage } from "../../testing/stage";
import { Tokens } from "./Tokens";

const secret = "berth_s3cr3t-of-the-token";
const token = { __typename: "AccessToken", id: "t1", name: "ci", prefix: "berth_s3", scopes: ["READ", "SESSIONS"] };

async function page() {
  const tokens: object[] = [];
  return stage(<Tokens />, {
    answers: {
      accessTokens: () => list(tokens),
      createAccessToken: () => {
        tokens.push(token);
        return { secret, accessToken: token };
      },
      revokeAccessToken: () => {
        tokens.pop();
        return { accessToken: { ...token, revokedAt: "2026-01-02T03:04:05Z" } };
      },
    },
  });
}

it("shows the secret of a new token once", async () => {
  const { api, user } = await page();
  await user.click(await screen.findByRole("button", { name: "New token" }));
  await user.type(await screen.findByLabelText(/^Name/), "ci");
  await user.click(screen.getByRole("button", { name: "Create" }));
  expect((await screen.findByLabelText("Token")).textContent).toBe(secret);
  expect(api.sent("CreateToken")).toMatchObject([{ input: { name: "ci", scopes: ["READ", "SESSIONS", "FOLDERS"] } }]);

  await user.click(screen.getByRole("button", { name: "I have saved it" }));
  expect(await screen.findByText("ci")).toBeDefined();
  expect(document.body.textContent).not.toContain(secret);
});

it("does not create a token without a name or a scope", async () => {
  const { user } = await page();
  await user.click(await screen.findByRole("button", { name: "New token" }));
  const create = await screen.findByRole<HTMLButtonElement>("button", { name: "Create" });
  expect(create.disabled).toBe(true);
  await user.type(screen.getByLabelText(/^Name/), "ci");
  expect(create.disabled).toBe(false);
  for (const scope of ["read", "sessions", "folders"]) await user.click(screen.getByLabelText(scope));
  expect(screen.getByText("Choose at least one scope.")).toBeDefined();
  expect(create.disabled).toBe(true);
});

it("revokes a token only after a confirmation", async () => {
  const { api, user } = await page();
  await user.click(await screen.findByRole("button", { name: "New token" }));
  await user.type(await screen.findByLabelText(/^Name/), "ci");
  await user.click(screen.getByRole("button", { name: "Create" }));
  await user.click(await screen.findByRole("button", { name: "I have saved it" }));
  await user.click(await screen.findByRole("button", { name: "Revoke ci" }));
  expect(api.sent("RevokeToken")).toEqual([]);
  await user.click(await screen.findByRole("button", { name: "Revoke" }));
  expect(await screen.findByText("ci was revoked.")).toBeDefined();
  expect(api.sent("RevokeToken")).toEqual([{ input: { id: "t1" } }]);
});
