import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { start, t } from "./i18n";
import en from "./locales/en.json";

const source = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => /(?<!\.test)\.tsx?$/.test(name))
  .map((name) => readFileSync(join("src", name), "utf8"))
  .join("\n");

beforeAll(start);

describe("texts", () => {
  it("fall back to their key", () => expect(t("No sessions yet")).toBe("No sessions yet"));
  it("insert values", () => expect(t("Launch {{image}}", { image: "python" })).toBe("Launch python"));
  it("have plural forms", () => {
    expect(t("{{count}} lines match", { count: 1 })).toBe("1 line matches");
    expect(t("{{count}} lines match", { count: 7 })).toBe("7 lines match");
  });
  it("in the English file are all used", () => {
    const unused = Object.keys(en).filter((key) => !source.includes(`"${key.replace(/_(one|other)$/, "")}"`));
    expect(unused).toEqual([]);
  });
});
