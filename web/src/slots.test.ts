import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nameSlots, slotName, withSlotNames } from "./slots";

const mig = (profile: string) => ({ name: `cuda.device:${profile}`, displayName: "GPU (MIG)" });

beforeEach(() =>
  nameSlots([
    { name: "cuda.shares", displayName: "fGPU" },
    { name: "cuda.device", displayName: "GPU" },
    { name: "rocm.device", displayName: "GPU" },
    mig("3g.40gb-mig"),
    mig("1c.2g.20gb-mig"),
    { name: "odd.device", displayName: "" },
  ]),
);
afterEach(() => nameSlots([]));

describe("a slot", () => {
  it.each([
    ["cpu", "CPU"],
    ["mem", "Memory"],
    ["cuda.shares", "fGPU"],
    // Slots with the same display name are distinguished by their profile or their vendor.
    ["cuda.device", "GPU (cuda)"],
    ["rocm.device", "GPU (rocm)"],
    ["cuda.device:3g.40gb-mig", "GPU (MIG) 3g.40gb"],
    ["cuda.device:1c.2g.20gb-mig", "GPU (MIG) 1c.2g.20gb"],
    ["odd.device", "odd device"],
    ["tpu.mem", "tpu memory"],
  ])("%s is called %s", (slot, name) => expect(slotName(slot)).toBe(name));
});

it.each([
  ["No machine has 2 free cuda.shares.", "No machine has 2 free fGPU."],
  ["cuda.device:3g.40gb-mig: 1 of 0", "GPU (MIG) 3g.40gb: 1 of 0"],
  ["Add a machine at gpu.example.org.", "Add a machine at gpu.example.org."],
])("the message %j becomes %j", (sentence, shown) => expect(withSlotNames(sentence)).toBe(shown));
