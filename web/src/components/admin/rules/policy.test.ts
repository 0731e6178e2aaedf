import { expect, it } from "vitest";
import { changeOf, draftOf, limits, type Policy, readDraft, words } from "./policy";

const nothing: Policy = {
  id: "1",
  name: "small",
  totalSlots: {},
  unlistedSlots: "UNLIMITED",
  maxPendingSlots: {},
  permissions: ["READ"],
  ...(Object.fromEntries(limits.map((l) => [l.key, null])) as Record<(typeof limits)[number]["key"], null>),
};
const small: Policy = {
  ...nothing,
  totalSlots: { cpu: "8", mem: String(32 * 1024 ** 3), "cuda.shares": "0" },
  unlistedSlots: "ZERO",
  maxPendingSlots: { cpu: "4" },
  maxSessions: 3,
  maxSessionLifetime: 90_000,
  idleTimeout: 1800,
  maxVfolders: 0,
  maxScopeBytes: 100 * 1024 ** 3,
};

it("parses what it has formatted", () => {
  const { limits: read, wrong } = readDraft(draftOf(small));
  expect(wrong).toEqual({});
  expect(read).toEqual({
    totalSlots: small.totalSlots,
    unlistedSlots: "ZERO",
    maxPendingSlots: { cpu: "4" },
    maxSessions: 3,
    maxSessionLifetime: 90_000,
    idleTimeout: 1800,
    maxVfolders: 0,
    maxScopeBytes: 100 * 1024 ** 3,
  });
});

it("removes limits whose fields are empty", () => {
  const draft = draftOf(small);
  draft.plain.maxSessions = " ";
  const change = changeOf(readDraft(draft).limits);
  expect(change.maxSessions).toBe(-1);
  expect(change.maxScopeBytes).toBe(100 * 1024 ** 3);
  expect(limits.filter((l) => change[l.key] === -1)).toHaveLength(10);
});

it("returns an error for each invalid field", () => {
  const draft = draftOf(nothing);
  draft.totalSlots = { cpu: "many" };
  draft.maxPendingSlots = { mem: "lots" };
  draft.plain = { ...draft.plain, maxSessions: "-1", idleTimeout: "12", maxScopeBytes: "100g" };
  expect(Object.keys(readDraft(draft).wrong).sort()).toEqual([
    "idleTimeout",
    "maxPendingSlots.mem",
    "maxSessions",
    "totalSlots.cpu",
  ]);
});

it("describes the limits of a policy", () => {
  expect(words(nothing)).toEqual([]);
  expect(words({ ...nothing, unlistedSlots: "ZERO" })).toEqual([["no resources at all"]]);
  expect(words(small).map(([key]) => key)).toEqual([
    "{{slots}} in use at once",
    "no {{slot}}",
    "no other resources",
    "{{slots}} requested by pending sessions",
    "{{count}} concurrent sessions",
    "sessions stop after {{time}}",
    "idle sessions stop after {{time}}",
    "{{count}} folders",
    "{{size}} of storage",
  ]);
});
