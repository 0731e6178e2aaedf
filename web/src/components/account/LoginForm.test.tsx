import { screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { stage } from "../../testing/stage";
import { LoginForm } from "./LoginForm";

const sent: unknown[] = [];
let answers: Response[] = [];

const refusal = (status: number, problem: object, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(problem), { status, headers });

beforeEach(() => {
  sent.length = 0;
  vi.stubGlobal("fetch", async (_: string, init: RequestInit) => {
    sent.push(JSON.parse(String(init.body)));
    return answers.shift() ?? new Response("{}");
  });
});
afterEach(() => vi.unstubAllGlobals());

async function enter(...responses: Response[]) {
  answers = responses;
  const onLogin = vi.fn();
  const { user } = await stage(<LoginForm providers={null} onLogin={onLogin} />);
  await user.type(await screen.findByLabelText(/E-mail/), "ada@berth.example");
  await user.type(screen.getByLabelText(/^Password/), "correct horse");
  await user.click(screen.getByRole("button", { name: "Log in" }));
  return { user, onLogin };
}

it("shows the same message for any wrong e-mail or password", async () => {
  const { onLogin } = await enter(refusal(401, { code: "UNAUTHENTICATED", detail: "no such user", requestId: "r-1" }));
  const alert = await screen.findByRole("alert");
  expect(alert.textContent).toContain("Incorrect e-mail or password.");
  expect(alert.textContent).not.toContain("no such user");
  expect(onLogin).not.toHaveBeenCalled();
});

it("asks for the code of two-step login, and sends it with the password", async () => {
  const { user, onLogin } = await enter(refusal(401, { code: "UNAUTHENTICATED", field: "code" }), new Response("{}"));
  await user.type(await screen.findByLabelText(/Code from your authenticator app/), "123456");
  await user.click(screen.getByRole("button", { name: "Continue" }));
  await vi.waitFor(() => expect(onLogin).toHaveBeenCalledWith("correct horse"));
  expect(sent.at(-1)).toEqual({ email: "ada@berth.example", password: "correct horse", code: "123456" });
});

it("disables the button while the server throttles logins", async () => {
  await enter(refusal(429, { code: "RESOURCE_EXHAUSTED", detail: "too many" }, { "Retry-After": "900" }));
  expect((await screen.findByRole("alert")).textContent).toMatch(/You can try again in 1[45] min/);
  expect(screen.getByRole<HTMLButtonElement>("button", { name: "Log in" }).disabled).toBe(true);
});
