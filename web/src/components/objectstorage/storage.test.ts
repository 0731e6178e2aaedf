import { describe, expect, it } from "vitest";
import { changes, draftOf, needsSecret, type Storage, s3URL } from "./storage";

const lake: Storage = {
  id: "1",
  name: "lake",
  endpoint: "https://s3.example.org",
  region: "",
  bucket: "lake",
  prefix: "team/",
  addressing: "PATH",
  accessKeyID: "AKIA",
  readOnly: false,
  permissions: [],
  domain: null,
  owner: null,
};

describe("an object storage in a form", () => {
  it("sends only changed fields", () => {
    expect(changes(lake, draftOf(lake))).toEqual({});
    expect(changes(lake, { ...draftOf(lake), region: "eu-1", readOnly: true })).toEqual({
      region: "eu-1",
      readOnly: true,
    });
    expect(changes(lake, { ...draftOf(lake), secret: "s" })).toEqual({ secret: "s" });
  });
  it("asks for the secret again for another endpoint or access key", () => {
    const draft = draftOf(lake);
    expect(needsSecret(lake, draft)).toBe(false);
    expect(needsSecret(lake, { ...draft, endpoint: "https://s3.example.org/" })).toBe(false);
    expect(needsSecret(lake, { ...draft, endpoint: "https://other.example.org" })).toBe(true);
    expect(needsSecret(lake, { ...draft, accessKeyID: "AKIB" })).toBe(true);
    expect(needsSecret(lake, { ...draft, accessKeyID: "" })).toBe(false);
  });
  it("is shown as an s3:// URL", () => expect(s3URL(lake, "a/b")).toBe("s3://lake/team/a/b"));
});
