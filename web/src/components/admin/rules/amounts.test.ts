import { describe, expect, it } from "vitest";
import {
  formatLimit,
  limitName,
  parseCount,
  parseSize,
  parseSlot,
  parseTime,
  printSize,
  printTime,
  readSlots,
  textsOf,
} from "./amounts";

const gib = 1024 ** 3;

describe("sizes", () => {
  it.each([
    ["32", 32 * gib],
    ["32g", 32 * gib],
    ["1.5 GiB", 1.5 * gib],
    ["512 MiB", gib / 2],
    ["12 B", 12],
    ["0", 0],
    [" 2 t", 2048 * gib],
  ])("reads %s", (text, n) => expect(parseSize(text)).toBe(n));
  it.each(["-1", "much", "1,5g", "99999999t", ""])("rejects %s", (text) => expect(parseSize(text)).toBeNull());
  it.each([0, 1, 1024, 3 * gib, 1.5 * gib, 5 * 1024 * gib, 1025])("formats %d so that it can be parsed again", (n) =>
    expect(parseSize(printSize(n))).toBe(n),
  );
});

describe("times", () => {
  it.each([
    ["12h", 43_200],
    ["1d 6h", 108_000],
    ["30 min", 1800],
    ["30m", 1800],
    ["45 seconds", 45],
    ["1.5h", 5400],
    ["0", 0],
  ])("reads %s", (text, n) => expect(parseTime(text)).toBe(n));
  it.each(["12", "soon", "1x", "-1h", ""])("rejects %s", (text) => expect(parseTime(text)).toBeNull());
  it.each([0, 59, 3600, 90_061])("formats %d so that it can be parsed again", (n) =>
    expect(parseTime(printTime(n))).toBe(n),
  );
});

it("parses whole numbers of up to 31 bits", () => {
  expect(parseCount(" 12 ")).toBe(12);
  for (const text of ["-1", "1.5", "3000000000", "many", ""]) expect(parseCount(text)).toBeNull();
});

it("keeps the exact decimals of slots", () => {
  expect(parseSlot("cuda.shares", "0.30")).toBe("0.3");
  expect(parseSlot("cuda.mem", "4")).toBe(String(4 * gib));
  expect(parseSlot("cpu", "1e3")).toBeNull();
});

it("parses the slots that it formatted, and returns an error for each invalid amount", () => {
  const slots = { cpu: "8", mem: String(32 * gib), "cuda.shares": "2.5" };
  expect(textsOf(slots)).toEqual({ cpu: "8", mem: "32 GiB", "cuda.shares": "2.5" });
  expect(readSlots({ ...textsOf(slots), "rocm.device": " " })).toEqual({ slots, wrong: {} });
  expect(Object.keys(readSlots({ cpu: "many", mem: "lots", "cuda.shares": "1" }).wrong)).toEqual(["cpu", "mem"]);
});

it("formats effective limits with their units", () => {
  expect(formatLimit("mem", String(gib))).toBe("1 GiB");
  expect(formatLimit("pending cuda.shares", "2")).toBe("2.0");
  expect(formatLimit("scope bytes", String(5 * gib))).toBe("5 GiB");
  expect(formatLimit("idle timeout", "1800")).toBe("30 min");
  expect(formatLimit("sessions", "3")).toBe("3");
  expect(["mem", "cuda.shares", "scope bytes", "idle timeout"].map((what) => formatLimit(what, "0"))).toEqual([
    "0",
    "0",
    "0",
    "0",
  ]);
});

it("returns the names of effective limits", () => {
  expect(limitName("cuda.shares")).toEqual(["cuda"]);
  expect(limitName("pending mem")).toEqual(["{{slot}}, pending sessions", { slot: "Memory" }]);
  expect(limitName("pending sessions")).toEqual(["Pending sessions"]);
});
