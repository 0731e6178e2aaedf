import { expect, it } from "vitest";
import {
  callbackOf,
  changedProvider,
  newProvider,
  type Provider,
  providerDraftOf,
  providerWrong,
} from "./providerdraft";

const corp: Provider = {
  id: "p1",
  name: "corp",
  displayName: "Corp",
  issuer: "https://login.corp.example",
  clientID: "berth",
  scopes: ["email"],
  active: true,
  autoProvision: true,
  emailDomains: ["corp.example", "lab.example"],
  createdAt: "2026-01-01T00:00:00Z",
  domain: { id: "d1", name: "default" },
  project: { id: "x", name: "vision" },
};

it("keeps the secret if none is typed, and removes the project", () => {
  const draft = { ...providerDraftOf(corp, ""), project: null };
  expect(changedProvider("p1", draft)).toEqual({
    id: "p1",
    displayName: "Corp",
    clientID: "berth",
    scopes: ["email"],
    autoProvision: true,
    emailDomains: ["corp.example", "lab.example"],
    clearProject: true,
  });
  expect(changedProvider("p1", { ...draft, clientSecret: "s" })).toMatchObject({ clientSecret: "s" });
});

it("creates a provider from the form", () => {
  const draft = {
    ...providerDraftOf(null, "d1"),
    name: " corp ",
    issuer: " https://login.corp.example ",
    clientID: "berth",
    clientSecret: " kept ",
    emailDomains: "a.example, b.example",
  };
  expect(newProvider(draft)).toMatchObject({
    name: "corp",
    issuer: "https://login.corp.example",
    clientSecret: " kept ",
    scopes: ["email", "profile"],
    emailDomains: ["a.example", "b.example"],
    domain: "d1",
    project: null,
  });
});

it.each([
  ["neither groups nor domains are listed", { autoProvision: true, emailDomains: "" }, "emailDomains"],
  ["an e-mail address instead of a domain", { autoProvision: false, emailDomains: "ada@corp.example" }, "emailDomains"],
  ["an issuer that is not a URL", { issuer: "login.corp.example" }, "issuer"],
  ["an issuer with a query string", { issuer: "https://login.corp.example?x=1" }, "issuer"],
] as const)("returns an error: %s", (_, more, field) =>
  expect(Object.keys(providerWrong({ ...providerDraftOf(corp, ""), ...more }))).toEqual([field]),
);

it("accepts a valid form", () => expect(providerWrong(providerDraftOf(corp, ""))).toEqual({}));

it("returns the redirect URI", () =>
  expect(callbackOf("https://berth.example", "corp")).toBe("https://berth.example/auth/oidc/corp/callback"));
