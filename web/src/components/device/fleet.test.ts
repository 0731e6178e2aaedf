import { describe, expect, it } from "vitest";
import { allocatableDevices, families, type Member, problems, problemText, shortName, stateOf } from "./fleet";

const device = (deviceId: string, more: Partial<Member> = {}): Member => ({
  id: deviceId,
  deviceId,
  plugin: deviceId.split(":")[0]!,
  vendor: "Acme",
  pciAddress: "",
  capacity: { "acme.device": "1" },
  health: "HEALTHY",
  healthMessage: "",
  allocatable: true,
  rejectReasons: [],
  parent: null,
  ...more,
});
const ids = (list: Member[]) => list.map((d) => d.deviceId);

describe("families", () => {
  it("groups devices by vendor in PCI order, without CPU and memory", () => {
    const list = families([
      device("mem", { capacity: { mem: "1" }, vendor: "" }),
      device("x:b", { vendor: "Zeta", pciAddress: "0000:9a:00.0" }),
      device("x:a", { vendor: "Zeta", pciAddress: "0000:b3:00.0" }),
      device("acme:10"),
      device("acme:9"),
    ]);
    expect(list.map((f) => [f.vendor, ids(f.units.map((u) => u.device))])).toEqual([
      ["Acme", ["acme:9", "acme:10"]],
      ["Zeta", ["x:b", "x:a"]],
    ]);
  });

  it("puts partitions below their device, and returns only allocatable devices as leaves", () => {
    const cut = device("acme:0", { allocatable: false, rejectReasons: ["it is cut"], capacity: {} });
    const parts = ["acme:0/0", "acme:0/1"].map((id) =>
      device(id, { parent: { id: "acme:0" }, capacity: { "acme.device:half": "1" } }),
    );
    const [family] = families([...parts, cut, device("acme:1/0", { parent: { id: "gone" } })]);
    expect(family!.units.map((u) => [u.device.deviceId, ids(u.partitions)])).toEqual([
      ["acme:0", ["acme:0/0", "acme:0/1"]],
      ["acme:1/0", []],
    ]);
    expect(ids(allocatableDevices(family!))).toEqual(["acme:0/0", "acme:0/1", "acme:1/0"]);
    expect(family!.slots).toEqual(["acme.device:half", "acme.device"]);
    expect(problems(family!)).toEqual([]);
  });
});

describe("stateOf", () => {
  it.each([
    [device("a:0"), false, "HEALTHY"],
    [device("a:0", { health: "DEGRADED" }), false, "DEGRADED"],
    [device("a:0", { health: "UNKNOWN" }), false, "UNKNOWN"],
    [device("a:0", { allocatable: false }), false, "rejected"],
    [device("a:0", { allocatable: false }), true, "cut"],
    [device("a:0", { allocatable: false, health: "LOST" }), true, "LOST"],
  ])("%#", (d, cut, want) => expect(stateOf(d, cut)).toBe(want));
});

describe("problems", () => {
  it("reports a problem of several devices once, the worst problem first", () => {
    const old = { allocatable: false, rejectReasons: ["too old"] };
    const [family] = families([
      device("a:0", old),
      device("a:1", old),
      device("a:2"),
      device("a:3", { health: "UNHEALTHY", healthMessage: "XID 79", allocatable: false, rejectReasons: ["XID 79"] }),
    ]);
    expect(problems(family!).map((x) => [x.state, x.text, ids(x.devices)])).toEqual([
      ["UNHEALTHY", "XID 79", ["a:3"]],
      ["rejected", "too old", ["a:0", "a:1"]],
    ]);
  });

  it("does not repeat the problem of a device for its partitions", () => {
    const ill = { health: "UNHEALTHY", allocatable: false, rejectReasons: ["memory errors"] };
    const part = (id: string, more: Partial<Member>) => device(id, { parent: { id: "a:0" }, ...more });
    const [family] = families([
      device("a:0", { ...ill, rejectReasons: ["memory errors", "it is cut"] }),
      part("a:0/0", ill),
      part("a:0/1", { ...ill, rejectReasons: ["gone"] }),
    ]);
    expect(problems(family!).map((x) => [x.text, ids(x.devices)])).toEqual([
      ["memory errors; it is cut", ["a:0"]],
      ["gone", ["a:0/1"]],
    ]);
  });

  it("ignores the message of a device that is healthy again", () =>
    expect(problemText(device("a:0", { healthMessage: "well again" }))).toBe(""));
});

describe("shortName", () => {
  it.each([
    ["gaudi:0000:1a:00.0", undefined, "1a:00.0"],
    ["mock:gpu-0", undefined, "gpu-0"],
    ["rocm:5000000000001eef", undefined, "…1eef"],
    ["rocm:5000000000001eef/7", "rocm:5000000000001eef", "7"],
    ["rocm:5000000000001eef/7", undefined, "…1eef/7"],
  ])("of %s below %s is %s", (id, parent, want) => expect(shortName(id, parent)).toBe(want));
});
