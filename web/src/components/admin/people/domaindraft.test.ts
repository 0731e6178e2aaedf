import { expect, it } from "vitest";
import { domainChanges, domainDraftOf, type KnownDomain } from "./domaindraft";

const lab: KnownDomain = {
  id: "d1",
  name: "lab",
  description: "",
  totpRequired: false,
  passwordMinLength: 10,
  passwordMaxAgeDays: 0,
  signUp: "OFF",
  registriesRestricted: false,
  registries: [{ id: "r2" }, { id: "r1" }],
};

it("sends nothing without a change, in any order of the registries", () => {
  expect(domainChanges(lab, domainDraftOf(lab))).toEqual({ input: { id: "d1" }, changed: false, wrong: {} });
  expect(domainChanges(lab, { ...domainDraftOf(lab), registries: ["r2", "r1"] }).changed).toBe(false);
});

it("sends only changed fields", () => {
  const draft = { ...domainDraftOf(lab), totpRequired: true, passwordMaxAgeDays: " 90 ", registries: [] };
  expect(domainChanges(lab, draft).input).toEqual({
    id: "d1",
    totpRequired: true,
    passwordMaxAgeDays: 90,
    registries: [],
  });
});

it("returns an error for each invalid number", () => {
  const { wrong } = domainChanges(lab, { ...domainDraftOf(lab), passwordMinLength: "", passwordMaxAgeDays: "-1" });
  expect(Object.keys(wrong)).toEqual(["passwordMinLength", "passwordMaxAgeDays"]);
});
