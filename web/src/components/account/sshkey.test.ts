import { describe, expect, it } from "vitest";
import { fileOf, isPrivate, keyKind, nameOf } from "./sshkey";

describe("an SSH key", () => {
  it.each([
    ["ssh-ed25519 AAAA", "ED25519"],
    ["ssh-rsa AAAA me@home", "RSA"],
    ["ecdsa-sha2-nistp256 AAAA", "NISTP256"],
    ["sk-ssh-ed25519@openssh.com AAAA", "SK-ED25519"],
  ])("%s is of kind %s", (text, kind) => expect(keyKind(text)).toBe(kind));
  it("gets its name from its comment", () => {
    expect(nameOf("ssh-rsa AAAA Ada Lovelace\n")).toBe("Ada Lovelace");
    expect(nameOf("ssh-rsa AAAA ada@home (work)")).toBe("ada-home -work-");
    expect(nameOf("ssh-rsa AAAA")).toBe("");
  });
  it("has a file name without special characters of shells", () => {
    expect(fileOf("my laptop/2")).toBe("berth_my_laptop_2");
    expect(fileOf("노트북")).toBe("berth_노트북");
    expect(fileOf(" ")).toBe("berth_key");
  });
  it("is private if its header says so", () => {
    expect(isPrivate("-----BEGIN OPENSSH PRIVATE KEY-----\nabc")).toBe(true);
    expect(isPrivate("PuTTY-User-Key-File-3: ssh-rsa")).toBe(true);
    expect(isPrivate("ssh-ed25519 AAAA PRIVATE KEY")).toBe(false);
  });
});
