import { describe, expect, it } from "vitest";
import { type Wish, acceleratorSlots, byRecent, check, inputOf, lineOf, marks, sizeOf, slotsOf } from "./request";

const wish: Wish = {
  image: "r/python:3", mode: "interactive", command: "", name: " ", cpu: 1, mem: 0.5, slot: "cuda.shares", share: 0,
  folders: [], project: null, group: null,
};

describe("inputOf", () => {
  it("sends only what was chosen", () => {
    expect(inputOf(wish, "k")).toEqual({
      image: "r/python:3", type: "interactive", slots: { cpu: "1", mem: "536870912" }, idempotencyKey: "k",
    });
  });

  it("runs a batch command in a shell, with exact amounts", () => {
    const sent = inputOf({ ...wish, mode: "batch", command: "echo $HOME | wc", share: 0.3, folders: [{ id: "f", readOnly: true }] }, "k");
    expect(sent.command).toEqual(["/bin/sh", "-c", "echo $HOME | wc"]);
    expect(sent.slots["cuda.shares"]).toBe("0.3");
    expect(sent.mounts).toEqual([{ vfolder: "f", readOnly: true }]);
  });
});

describe("launching again", () => {
  it("keeps the size", () => {
    const slots = { cpu: "2", mem: "4294967296", "cuda.shares": "0.5" };
    expect(slotsOf(sizeOf(slots))).toEqual(slots);
    expect(sizeOf()).toEqual({ cpu: 1, mem: 1, slot: "", share: 0 });
  });
  it("keeps the command", () => {
    expect(lineOf(["/bin/sh", "-c", "echo $HOME | wc"])).toBe("echo $HOME | wc");
    expect(lineOf(["python3", "-c", "print('hi')"])).toBe(`python3 -c 'print('\\''hi'\\'')'`);
  });
});

describe("check", () => {
  it("passes a plain wish", () => expect(check(wish)).toEqual({}));
  it("names each field at fault", () => {
    expect(Object.keys(check({ ...wish, image: "", mode: "batch", name: "n".repeat(65), cpu: 0 })).sort()).toEqual([
      "command", "image", "name", "slots.cpu",
    ]);
  });
});

it("offers accelerators that exist", () => {
  const capacities: Record<string, string>[] = [{ cpu: "4" }, { "rocm.device": "1" }, { "cuda.mem": "9", "cuda.shares": "1" }];
  const agents = [{ devices: capacities.map((capacity) => ({ capacity })) }];
  expect(acceleratorSlots(agents)).toEqual(["cuda.shares", "rocm.device"]);
});

it("marks the dial up to what one agent has", () => {
  expect(marks("cuda.shares", 2)).toEqual([0, 0.25, 0.5, 0.75, 1, 2]);
  expect(marks("rocm.device", 3)).toEqual([0, 1, 2]);
});

it("puts recent images first", () => {
  const images = ["a", "b", "c"].map((n) => ({ reference: n, name: n }));
  expect(byRecent(images, ["c", "gone", "b"]).map((i) => i.name)).toEqual(["c", "b", "a"]);
});
