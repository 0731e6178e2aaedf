import { expect, it } from "vitest";
import { draftOf, readDraft } from "./groupdraft";

it("starts a new group with the defaults of the server", () => {
  const { input, wrong } = readDraft(draftOf(null));
  expect(wrong).toEqual({});
  expect(input).toMatchObject({
    public: false,
    strategy: "PACK",
    split: "FILL",
    topology: "PREFER",
    order: "FIFO",
    holdAfter: 600,
    halfLife: 604_800,
    lookback: 2_419_200,
  });
});

it("formats and parses times", () => {
  expect(draftOf(null).times).toMatchObject({
    holdAfter: "10 min",
    halfLife: "7 d",
    lookback: "28 d",
    lostAfter: "5 min",
    pendingTimeout: "0 s",
  });
  const draft = { ...draftOf(null), hold: false };
  expect(readDraft(draft).input.holdAfter).toBe(-1);
  expect(readDraft({ ...draft, times: { ...draft.times, halfLife: "1d 12h" } }).input.halfLife).toBe(129_600);
});

it("returns an error for invalid values and values out of range", () => {
  const draft = draftOf(null);
  const { wrong } = readDraft({
    ...draft,
    sessionTypes: [],
    times: { ...draft.times, holdAfter: "soon", halfLife: "1s", lookback: "400d" },
  });
  expect(Object.keys(wrong).sort()).toEqual(["halfLife", "holdAfter", "lookback", "sessionTypes"]);
  expect(wrong.lookback).toEqual(["Enter a value from {{least}} to {{most}}.", { least: "1 min", most: "365 d" }]);
});

it("parses networks separated by line breaks, commas or spaces", () => {
  expect(readDraft(draftOf(null)).input.allowedNetworks).toEqual([]);
  expect(
    readDraft({ ...draftOf(null), allowedNetworks: " 10.1.0.0/16,10.1.2.3:443\n\n10.2.0.0/16 10.3.0.1 " }).input
      .allowedNetworks,
  ).toEqual(["10.1.0.0/16", "10.1.2.3:443", "10.2.0.0/16", "10.3.0.1"]);
});
