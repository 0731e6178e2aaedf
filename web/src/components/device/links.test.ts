import { expect, it } from "vitest";
import { type Link, matrix, parents, toParents } from "./links";

const link = (a: string, b: string, type: string, distance: number): Link => ({
  a,
  b,
  type,
  distance,
  gbps: 0,
  p2p: true,
});

it("returns the shortest link of two devices in both directions", () => {
  const m = matrix(
    ["x:0", "x:1", "x:2"],
    [link("x:1", "x:0", "PCIE", 5), link("x:0", "x:1", "NVLINK", 1), link("x:0", "nic:0", "NIC", 0)],
  );
  expect(m.names).toEqual(["x:0", "x:1"]);
  expect(m.between("x:0", "x:1")).toBe(m.between("x:1", "x:0"));
  expect(m.between("x:0", "x:1")!.type).toBe("NVLINK");
  expect(m.between("x:0", "x:2")).toBeUndefined();
  expect(m.kinds).toEqual(["NVLINK"]);
});

it("is empty without links", () => expect(matrix(["x:0"], []).names).toEqual([]));

it("replaces partitions by their parent devices", () => {
  const part = (id: string, parent: string | null) => ({
    id,
    deviceId: `x:${id}`,
    parent: parent ? { id: parent } : null,
  });
  const whole = parents([part("0", null), part("0/0", "0"), part("1", null), part("1/0", "1"), part("2/0", "gone")]);
  const links = toParents([link("x:0/0", "x:1/0", "XGMI", 3), link("x:0/0", "x:2/0", "XGMI", 4)], whole);
  expect(links.map((l) => [l.a, l.b])).toEqual([
    ["x:0", "x:1"],
    ["x:0", "x:2/0"],
  ]);
});
