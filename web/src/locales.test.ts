import { readdirSync, readFileSync } from "node:fs";
import { buildSchema } from "graphql";
import { describe, expect, it } from "vitest";
import { actionName } from "./components/account/trail";
import en from "./locales/en.json";
import { textsOf } from "./testing/texts";

/** Actions in the audit log that are no mutations of the API. */
const otherActions = [
  "actAs",
  "authenticate",
  "changeFiles",
  "connect",
  "deleteUser.done",
  "enterApp",
  "enterRecovery",
  "enterSession",
  "exportAudit",
  "listSessionFiles",
  "readFiles",
  "readSessionFile",
  "readSessionLog",
  "writeSessionFile",
];
const schema = buildSchema(readFileSync("../schema.graphql", "utf8"));
const actions = [...Object.keys(schema.getMutationType()?.getFields() ?? {}), ...otherActions].map(actionName);

const texts = [...new Set([...textsOf("src"), ...actions])];
const plurals = Object.keys(en).filter((key) => key.endsWith("_other"));
const plain = texts.filter((text) => !plurals.includes(`${text}_other`));

/** Korean and Japanese, as i18next knows them, have one form for all numbers, which it calls "other". */
const wanted = [...plain, ...plurals];

const read = (name: string): Record<string, string> => JSON.parse(readFileSync(`src/locales/${name}`, "utf8"));
const placeholders = (text: string) => [...new Set(text.match(/\{\{.*?\}\}/g))].sort();

describe("the search for texts", () => {
  it("finds literals, both branches of a condition, and texts that t gets from elsewhere", () => {
    expect(texts).toEqual(expect.arrayContaining(["No sessions yet", "Edit {{name}}", "New idle checker"]));
    expect(texts).toEqual(
      expect.arrayContaining(["Waiting to restart", "reconnecting", "6 h", "no {{slot}}", "copying"]),
    );
  });
  it("adds the actions of the audit log", () => expect(texts).toContain("Create SSH key"));
  it("finds all plurals of English", () => {
    expect(plurals.filter((key) => !texts.includes(key.slice(0, -"_other".length)))).toEqual([]);
  });
});

describe.each(readdirSync("src/locales").filter((name) => name !== "en.json"))("%s", (name) => {
  const translations = read(name);

  it("translates all texts", () => {
    expect(wanted.filter((key) => !translations[key]?.trim())).toEqual([]);
  });
  it("translates nothing else", () => {
    expect(Object.keys(translations).filter((key) => !wanted.includes(key))).toEqual([]);
  });
  it("keeps the placeholders", () => {
    const wrong = Object.entries(translations).filter(([key, text]) => {
      const allowed = placeholders(key);
      const used = placeholders(text);
      return used.join() !== allowed.join();
    });
    expect(wrong).toEqual([]);
  });
});
