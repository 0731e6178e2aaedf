import { describe, expect, it } from "vitest";
import { amount, brief, bytes, duration, parseBytes, slotHours, slotsLine } from "./format";

describe("format", () => {
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1536, "1.5 KiB"],
    [1024 ** 3, "1 GiB"],
    [15.55 * 1024 ** 3, "15.6 GiB"],
  ])("bytes %d is %s", (n, want) => expect(bytes(n)).toBe(want));

  it.each([
    [-5, "0 s"],
    [8_400, "8 s"],
    [200_000, "3 min 20 s"],
    [3_600_000, "1 h"],
    [349_200_000, "4 d 1 h"],
  ])("duration %d is %s", (ms, want) => expect(duration(ms)).toBe(want));

  it.each([
    [0, "0 s"],
    [412, "0.41 s"],
    [9_990, "9.99 s"],
    [61_000, "1 min 1 s"],
  ])("brief %d is %s", (ms, want) => expect(brief(ms)).toBe(want));

  it.each([
    ["cuda.shares", "0.500", "0.5"],
    ["cuda.shares", "1.000", "1.0"],
    ["cpu", "2", "2"],
    ["mem", "1073741824", "1 GiB"],
    ["cuda.mem", "536870912", "512 MiB"],
  ])("%s %s is %s", (slot, decimal, want) => expect(amount(slot, decimal)).toBe(want));

  it("formats slots in a fixed order without empty ones", () => {
    expect(slotsLine({ "cuda.shares": "0.5", mem: "1073741824", cpu: "1", "rocm.device": "0" })).toBe(
      "1 CPU · 1 GiB · 0.5 cuda",
    );
  });

  it("formats memory in GiB-hours", () => {
    expect(slotHours("mem", String(1024 ** 3 * 3600 * 2))).toBe("2.00");
    expect(slotHours("cpu", "1")).toBe("< 0.01");
  });

  it.each([
    ["4g", 4 * 1024 ** 3],
    ["1.5 GiB", 1.5 * 1024 ** 3],
    ["100", 100],
    ["four", null],
    ["-1g", null],
  ])("parseBytes %s", (text, want) => expect(parseBytes(text)).toBe(want));
});
