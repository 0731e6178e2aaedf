import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { duration } from "./components/format";
import { languages, start, t } from "./i18n";
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

describe("Korean", () => {
  beforeAll(async () => {
    localStorage.setItem("berth.language", "ko");
    await start();
  });
  afterAll(start);

  it("is in the menu with its own name", () => expect(languages).toContainEqual({ code: "ko", name: "한국어" }));
  it("is the language of the document", () => expect(document.documentElement.lang).toBe("ko"));
  it("has one form for all numbers", () => {
    expect(t("{{count}} days", { count: 1 })).toBe("1일");
    expect(t("{{count}} days", { count: 7 })).toBe("7일");
  });
  it("inserts values", () => expect(t("Launch {{image}}", { image: "python" })).toBe("python 시작"));
  it("formats durations", () => expect(duration(200_000)).toBe("3분 20초"));
});
