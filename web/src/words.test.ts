import { readFileSync } from "node:fs";
import { buildSchema, isEnumType } from "graphql";
import { beforeAll, describe, expect, it } from "vitest";
import { start } from "./i18n";
import { word, words } from "./words";

beforeAll(start);

const schema = buildSchema(readFileSync("../schema.graphql", "utf8"));
const enums = Object.values(schema.getTypeMap()).filter((type) => isEnumType(type) && !type.name.startsWith("__"));

/** Enums whose values no page shows. */
const hidden = [
  "Audience",
  "DryRunVerdict",
  "ImportPasswords",
  "KernelRole",
  "LinkType",
  "ModelOptionType",
  "OccupancyDriftKind",
  "OrderDirection",
  "OrphanFolderState",
  "PendingStage",
  "PresetState",
  "ResourceGroupAccessReason",
  "ResourceGroupHolder",
  "RetentionCategory",
  "SessionResult",
  "ShareEnforcement",
  "SlotKind",
  "SuggestionKind",
  "VfolderKind",
  "ViewerDue",
];
const shown = enums.filter((e) => !hidden.includes(e.name) && !e.name.endsWith("OrderField"));

describe("the enums of the API", () => {
  it.each(shown.map((e) => [e.name, e] as const))("%s has a name for each value", (name, type) => {
    const known = words[name as keyof typeof words] as Record<string, string> | undefined;
    expect(known, `no words for the enum ${name}`).toBeDefined();
    for (const { name: value } of isEnumType(type) ? type.getValues() : []) {
      expect(known?.[value], `${name}.${value}`).toMatch(/^[A-Za-z][^_]*$/);
    }
  });
  it("are all in the schema", () => {
    const names = enums.map((e) => e.name);
    expect(Object.keys(words).filter((name) => !names.includes(name))).toEqual([]);
    expect(hidden.filter((name) => !names.includes(name))).toEqual([]);
  });
});

it("shows an unknown value of a newer server unchanged", () =>
  expect(word("SessionStatus", "hibernating" as "RUNNING")).toBe("hibernating"));
