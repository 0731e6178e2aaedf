import { describe, expect, it } from "vitest";
import {
  acceleratorSlots,
  amountChoices,
  amountsOf,
  byRecent,
  check,
  defaults,
  diskLimits,
  inputOf,
  type LaunchDraft,
  lineOf,
  presetFit,
  sizeInput,
  sizes,
  slotsOf,
  withAmounts,
  withPreset,
} from "./request";

const draft: LaunchDraft = {
  image: "r/python:3",
  mode: "INTERACTIVE",
  command: "",
  name: " ",
  cpu: 1,
  mem: 0.5,
  slot: "cuda.shares",
  share: 0,
  preset: null,
  disk: "",
  folders: [],
  project: null,
  group: null,
  open: "",
  ...defaults,
};

describe("inputOf", () => {
  it("sends only the selected fields", () => {
    expect(inputOf(draft, "k")).toEqual({
      image: "r/python:3",
      type: "INTERACTIVE",
      slots: { cpu: "1", mem: "536870912" },
      idempotencyKey: "k",
    });
  });

  it("runs a batch command in a shell, with exact amounts", () => {
    const sent = inputOf(
      { ...draft, mode: "BATCH", command: "echo $HOME | wc", share: 0.3, folders: [{ id: "f", readOnly: true }] },
      "k",
    );
    expect(sent.command).toEqual(["/bin/sh", "-c", "echo $HOME | wc"]);
    expect(sent.slots["cuda.shares"]).toBe("0.3");
    expect(sent.mounts).toEqual([{ vfolder: "f", readOnly: true }]);
  });
});

describe("scheduling and placement", () => {
  it("is sent if it was requested", () => {
    const sent = inputOf(
      {
        ...draft,
        mode: "BATCH",
        command: "true",
        startsAt: "2030-01-02T03:04",
        dependsOn: ["a"],
        lifetime: "1h 30min",
        priority: 20,
        preemptible: true,
        agents: ["n"],
        strict: true,
        sessionGroup: "g",
      },
      "k",
    );
    expect(sent).toMatchObject({
      startsAt: new Date("2030-01-02T03:04").toISOString(),
      dependsOn: ["a"],
      lifetime: 5400,
      priority: 20,
      preemptible: true,
      agents: ["n"],
      strictAgents: true,
      sessionGroup: "g",
    });
  });
  it("has no start time for interactive sessions", () =>
    expect(inputOf({ ...draft, startsAt: "2030-01-02T03:04" }, "k")).not.toHaveProperty("startsAt"));
  it("is checked", () => {
    expect(Object.keys(check({ ...draft, lifetime: "long", priority: 101 }))).toEqual(["lifetime", "priority"]);
    expect(check({ ...draft, lifetime: "2h", priority: 0 })).toEqual({});
  });
});

describe("the disk", () => {
  it("is sent in bytes if it was requested", () => {
    expect(inputOf({ ...draft, disk: "40g" }, "k").diskBytes).toBe(40 * 1024 ** 3);
    expect(inputOf(draft, "k")).not.toHaveProperty("diskBytes");
  });
  it("is checked", () => expect(Object.keys(check({ ...draft, disk: "much" }))).toEqual(["diskBytes"]));
  it("has the default and the limit of the policy", () => {
    const limit = (n: number) => [
      { what: "cpu", limit: "4", policy: "p", holder: "h" },
      { what: "disk bytes", limit: String(n * 1024 ** 3), policy: "lab", holder: "thesis" },
    ];
    expect(diskLimits([])).toEqual({ defaultSize: 20 * 1024 ** 3, maxSize: 20 * 1024 ** 3, policy: "", holder: "" });
    expect(diskLimits(limit(5))).toEqual({
      defaultSize: 5 * 1024 ** 3,
      maxSize: 5 * 1024 ** 3,
      policy: "lab",
      holder: "thesis",
    });
    expect(diskLimits(limit(100))).toMatchObject({ defaultSize: 20 * 1024 ** 3, maxSize: 100 * 1024 ** 3 });
  });
});

describe("launching again", () => {
  it("keeps the size", () => {
    const slots = { cpu: "2", mem: "4294967296", "cuda.shares": "0.5" };
    expect(slotsOf(amountsOf(slots))).toEqual(slots);
    expect(amountsOf()).toEqual({ cpu: 1, mem: 1, slot: "", share: 0 });
  });
  it("keeps the command", () => {
    expect(lineOf(["/bin/sh", "-c", "echo $HOME | wc"])).toBe("echo $HOME | wc");
    expect(lineOf(["python3", "-c", "print('hi')"])).toBe(`python3 -c 'print('\\''hi'\\'')'`);
  });
});

describe("a preset", () => {
  const preset = { id: "p", slots: { "cuda.shares": "0.5", "cuda.mem": "1073741824" }, shmBytes: 1 << 30 };
  it("is requested with its exact amounts", () => {
    const sent = inputOf({ ...draft, ...withPreset(preset) }, "k");
    expect(sent.slots).toEqual(preset.slots);
    expect(sent.shmBytes).toBe(1 << 30);
  });
  it("fills the fields, with the server's defaults for amounts that it does not set", () =>
    expect(withPreset(preset)).toEqual({ preset, cpu: 1, mem: 1, slot: "cuda.shares", share: 0.5 }));
  it("is deselected when an amount is changed", () => {
    const sent = inputOf({ ...draft, ...withPreset(preset), ...withAmounts({ cpu: 2 }) }, "k");
    expect(sent.slots).toEqual({ cpu: "2", mem: String(1 << 30), "cuda.shares": "0.5" });
    expect(sent).not.toHaveProperty("shmBytes");
  });
});

describe("check", () => {
  it("accepts a minimal request", () => expect(check(draft)).toEqual({}));
  it("returns an error for each invalid field", () => {
    expect(Object.keys(check({ ...draft, image: "", mode: "BATCH", name: "n".repeat(65), cpu: 0 })).sort()).toEqual([
      "command",
      "image",
      "name",
      "slots.cpu",
    ]);
  });
});

it("offers accelerators that exist", () => {
  const capacities: Record<string, string>[] = [
    { cpu: "4" },
    { "rocm.device": "1" },
    { "cuda.mem": "9", "cuda.shares": "1" },
  ];
  const agents = [{ devices: capacities.map((capacity) => ({ capacity })) }];
  expect(acceleratorSlots(agents)).toEqual(["cuda.shares", "rocm.device"]);
});

it("offers amounts up to those of one agent", () => {
  expect(amountChoices("cuda.shares", 2)).toEqual([0, 0.25, 0.5, 0.75, 1, 2]);
  expect(amountChoices("rocm.device", 3)).toEqual([0, 1, 2]);
  expect(amountChoices("tpu.device", 4, [1, 4, 8])).toEqual([0, 1, 4]);
});

it("puts recent images first", () => {
  const images = ["a", "b", "c"].map((n) => ({ reference: n, name: n }));
  expect(byRecent(images, ["c", "gone", "b"]).map((i) => i.name)).toEqual(["c", "b", "a"]);
});

describe("sizes", () => {
  it("are tried with the fields that decide where a session runs, and no others", () => {
    const half: LaunchDraft = {
      ...draft,
      mode: "BATCH",
      command: "",
      name: "-",
      lifetime: "soon",
      disk: "1 PiB",
      group: "g",
      agents: ["a"],
      strict: true,
    };
    expect(sizeInput(half, sizes[2]!)).toEqual({
      image: draft.image,
      type: "BATCH",
      command: ["/bin/sh", "-c", "true"],
      slots: { cpu: "4", mem: String(8 * 2 ** 30) },
      ...(draft.project ? { project: draft.project } : {}),
      resourceGroup: "g",
      agents: ["a"],
      strictAgents: true,
    });
  });

  it("show the result of the server", () => {
    const reason = "No machine of the resource group has 4 CPU cores: the most that any machine has is 2.";
    expect(presetFit({ verdict: "NEVER", refusals: [{ message: reason }] })).toEqual({ state: "NEVER", reason });
    expect(presetFit({ verdict: "WAITS", refusals: [] })).toEqual({ state: "WHEN_FREE", reason: "" });
    expect(presetFit({ verdict: "REFUSED", refusals: [{ message: "a" }, { message: "b" }] })).toEqual({
      state: "REFUSED",
      reason: "a b",
    });
  });
});
