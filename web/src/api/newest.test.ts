import { describe, expect, it } from "vitest";
import { newest } from "./newest";

const session = (version: number, status: string) => ({ __typename: "Session", id: "s1", version, status });

describe("newest", () => {
  it("passes a newer state", () => {
    const apply = newest();
    apply({ sessionChanged: session(1, "pending") });
    expect(apply({ sessionChanged: session(2, "running") })).toEqual({ sessionChanged: session(2, "running") });
  });

  it("replaces an older state that arrives last, also inside a list", () => {
    const apply = newest();
    apply({ sessionChanged: session(5, "running") });
    const late = apply({ sessions: { edges: [{ node: { ...session(4, "creating"), name: "train" } }] } });
    expect(late.sessions.edges[0]!.node).toEqual({ ...session(5, "running"), name: "train" });
  });

  it("does not change other objects", () => {
    const apply = newest();
    apply({ sessionChanged: session(5, "running") });
    const other = { ...session(1, "pending"), id: "s2" };
    expect(apply({ node: other, agent: { __typename: "Agent", id: "s1", name: "a" } })).toEqual({
      node: other,
      agent: { __typename: "Agent", id: "s1", name: "a" },
    });
  });
});
