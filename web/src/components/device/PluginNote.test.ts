import { describe, expect, it } from "vitest";
import { hasProblem, type PluginView } from "./PluginNote";

const plugin = (more: Partial<PluginView>): PluginView => ({
  name: "cuda",
  version: "1",
  state: "RUNNING",
  message: "",
  restarts: 0,
  checks: [],
  ...more,
});

describe("hasProblem", () => {
  it.each([
    [plugin({}), false],
    [plugin({ restarts: 3 }), false],
    [plugin({ state: "BACKOFF" }), true],
    [plugin({ message: "cuda-smi prints no JSON" }), true],
    [plugin({ checks: [{ name: "limit", level: "WARNING", text: "not installed" }] }), false],
    [plugin({ checks: [{ name: "driver", level: "ERROR", text: "not loaded" }] }), true],
  ])("%o: %s", (p, want) => expect(hasProblem(p)).toBe(want));
});
