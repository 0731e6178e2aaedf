import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import en from "./locales/en.json";
import { textsOf } from "./testing/texts";

const texts = textsOf("src");
const plurals = Object.keys(en).filter((key) => key.endsWith("_other"));
const plain = texts.filter((text) => !plurals.includes(`${text}_other`));

/** Korean and Japanese, as i18next knows them, have one form for all numbers, which it calls "other". */
const wanted = [...plain, ...plurals];

const read = (name: string): Record<string, string> => JSON.parse(readFileSync(`src/locales/${name}`, "utf8"));
const placeholders = (text: string) => [...new Set(text.match(/\{\{.*?\}\}/g))].sort();

describe("the search for texts", () => {
  it("finds literals, both branches of a condition, and texts that t gets from elsewhere", () => {
    expect(texts).toEqual(expect.arrayContaining(["No sessions yet", "Edit {{name}}", "New idle checker"]));
    expect(texts).toEqual(expect.arrayContaining(["Waiting to restart", "reconnecting", "6 h", "no {{slot}}"]));
  });
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
