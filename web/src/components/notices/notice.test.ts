import { describe, expect, it } from "vitest";
import { pathOf, textOf } from "./notice";

describe("a notice", () => {
  it("about one event names it", () =>
    expect(textOf({ kind: "SESSION_FAILED", parameters: { name: "train", reason: "out of memory" }, count: 1 })).toBe(
      "Session train has failed: out of memory.",
    ));
  it("about several has their number", () =>
    expect(
      textOf({ kind: "SESSION_FAILED", parameters: { name: "train", reason: "out of memory" }, count: 9995 }),
    ).toBe("9995 sessions have failed, among them train: out of memory."));
  it("keeps what looks like HTML as text", () =>
    expect(textOf({ kind: "TEST", parameters: { name: "<b>&" }, count: 1 })).toBe("This is a test of channel <b>&."));
  it("links to its object", () => {
    expect(pathOf({ kind: "SESSION_ENDED", subjectID: "s" })).toBe("/sessions/s");
    expect(pathOf({ kind: "TEST", subjectID: null })).toBe("/account/notices");
  });
});
