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

describe("fit", () => {
  it("finds room on one device", () => {
    expect(fit([agent(cpu(4), gpu("0.5"))], { cpu: "1", "cuda.shares": "0.5" })).toEqual({ now: 1, of: 1, why: null });
  });

  it("is not deceived by a sum of fragments", () => {
    const result = fit([agent(gpu("0.5"), gpu("0.5"))], { "cuda.shares": "1" });
    expect(result).toEqual({ now: 0, of: 1, why: { slot: "cuda.shares", reason: "contiguity" } });
  });

  it("names what is used up", () => {
    expect(fit([agent(cpu(1))], { cpu: "2" }).why).toEqual({ slot: "cpu", reason: "total" });
    expect(fit([agent(cpu(1))], { "rocm.device": "1" }).why).toEqual({ slot: "rocm.device", reason: "none" });
  });

  it("passes by closed agents and sick devices", () => {
    expect(fit([{ ...agent(cpu(8)), schedulable: false }], { cpu: "1" })).toEqual({ now: 0, of: 0, why: null });
    expect(fit([agent(gpu("0", { health: "unhealthy" }))], { "cuda.shares": "0.1" }).now).toBe(0);
  });
});

describe("largest", () => {
  it("is what the best agent has", () => {
    expect(largest([agent(gpu("1"), gpu("0")), agent(gpu("0"))], "cuda.shares")).toBe(2);
  });
});
