import { describe, expect, it } from "vitest";
import { type FitAgent, fit, largest } from "./fit";

const gpu = (occupied: string, more = {}) => ({
  allocatable: true,
  health: "healthy",
  capacity: { "cuda.shares": "1" },
  occupied: { "cuda.shares": occupied },
  ...more,
});
const cpu = (free: number) => ({
  allocatable: true,
  health: "healthy",
  capacity: { cpu: "8" },
  occupied: { cpu: String(8 - free) },
});
const agent = (...devices: FitAgent["devices"]): FitAgent => ({ status: "alive", schedulable: true, devices });

const none = new Set<string>();

describe("fit", () => {
  it("finds room on one device", () => {
    expect(fit([agent(cpu(4), gpu("0.5"))], { cpu: "1", "cuda.shares": "0.5" }, none)).toEqual({ now: 1, of: 1, why: null });
  });

  it("is not deceived by a sum of fragments", () => {
    const result = fit([agent(gpu("0.5"), gpu("0.5"))], { "cuda.shares": "1" }, none);
    expect(result).toEqual({ now: 0, of: 1, why: { slot: "cuda.shares", reason: "contiguity" } });
  });

  it("names what is used up", () => {
    expect(fit([agent(cpu(1))], { cpu: "2" }, none).why).toEqual({ slot: "cpu", reason: "total" });
    expect(fit([agent(cpu(1))], { "rocm.device": "1" }, none).why).toEqual({ slot: "rocm.device", reason: "none" });
  });

  it("takes off what is held under another name of the same", () => {
    const both = new Set(["cuda.shares", "cuda.mem"]);
    const half = gpu("0.5", { capacity: { "cuda.shares": "1", "cuda.mem": "85899345920" } });
    expect(fit([agent(half)], { "cuda.mem": "42949672960" }, both).now).toBe(1);
    expect(fit([agent(half)], { "cuda.mem": "42950721536" }, both).why).toEqual({ slot: "cuda.mem", reason: "total" });
    expect(fit([agent(half)], { "cuda.mem": "85899345920" }, none).now).toBe(1);
  });

  it("passes by closed agents and sick devices", () => {
    expect(fit([{ ...agent(cpu(8)), schedulable: false }], { cpu: "1" }, none)).toEqual({ now: 0, of: 0, why: null });
    expect(fit([agent(gpu("0", { health: "unhealthy" }))], { "cuda.shares": "0.1" }, none).now).toBe(0);
  });
});

describe("largest", () => {
  it("is what the best agent has", () => {
    expect(largest([agent(gpu("1"), gpu("0")), agent(gpu("0"))], "cuda.shares")).toBe(2);
  });
});
