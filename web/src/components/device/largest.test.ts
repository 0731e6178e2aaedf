import { describe, expect, it } from "vitest";
import { largest } from "./largest";

const gpu = (more = {}) => ({ allocatable: true, health: "HEALTHY", capacity: { "cuda.shares": "1" }, ...more });
const agent = (...devices: ReturnType<typeof gpu>[]) => ({ devices });

describe("largest", () => {
  it("is the amount of the largest agent", () => {
    expect(largest([agent(gpu(), gpu()), agent(gpu())], "cuda.shares")).toBe(2);
  });

  it("leaves out devices that cannot be allocated", () => {
    expect(largest([agent(gpu({ health: "UNHEALTHY" }), gpu({ allocatable: false }))], "cuda.shares")).toBe(0);
  });
});
