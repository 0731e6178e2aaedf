import { expect, it } from "vitest";
import { orphansOf } from "./orphan";

const scope = "01a202c3-ebb1-7598-8369-d08853670f26";
const folder = "01a202c4-0f66-7087-95b6-a3f2bb0c6801";

it("returns a removal input only for orphans that Berth created, folders before their scope", () => {
  const found = orphansOf({
    scopes: [
      { scope, usedBytes: 5 },
      { scope: "lost+found", usedBytes: null },
    ],
    folders: [
      { state: "PRESENT", scope, folder, path: "a/b" },
      { state: "UNKNOWN", scope: "", folder: "backup", path: "backup" },
    ],
  });
  expect(found.map((o) => [o.name, o.input])).toEqual([
    ["a/b", { scope, folder }],
    ["backup", null],
    [scope, { scope }],
    ["lost+found", null],
  ]);
});
