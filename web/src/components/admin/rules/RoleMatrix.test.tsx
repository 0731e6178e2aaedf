import { screen } from "@testing-library/react";
import { useState } from "react";
import { expect, it } from "vitest";
import { stage } from "../../../testing/stage";
import { RoleMatrix } from "./RoleMatrix";
import { type Allows, allowsOf, ticksOf } from "./role";

function Editor({ begin }: { begin: Allows }) {
  const [ticks, setTicks] = useState(ticksOf(begin));
  return (
    <>
      <RoleMatrix ticks={ticks} onChange={setTicks} />
      <output>{JSON.stringify(allowsOf(ticks))}</output>
    </>
  );
}

/** Returns a checkbox by its label. A search by role takes seconds among a hundred checkboxes. */
const box = (name: string) => document.querySelector<HTMLInputElement>(`[aria-label="${name}"]`)!;
const allowed = () => JSON.parse(screen.getByRole("status").textContent ?? "") as Allows;

it("selects and clears one operation, a row and a column", async () => {
  const { user } = await stage(<Editor begin={[{ entity: "SESSION", operations: ["READ", "ENTER"] }]} />);
  await screen.findByRole("status");
  await user.click(box("connect on session"));
  expect(allowed()).toEqual([{ entity: "SESSION", operations: ["READ"] }]);
  await user.click(box("everything on folder"));
  expect(allowed().find((a) => a.entity === "VFOLDER")?.operations).toContain("WRITE_FILES");
  await user.click(box("read on all types"));
  expect(allowed().every((a) => a.operations.includes("READ"))).toBe(true);
  expect(allowed().find((a) => a.entity === "REGISTRY")?.operations).toEqual(["READ"]);
});

it("is read-only without onChange, and hides rows that allow nothing", async () => {
  await stage(<RoleMatrix ticks={ticksOf([{ entity: "RESOURCE_GROUP", operations: ["READ"] }])} />);
  expect(await screen.findByText("resource group")).toBeDefined();
  expect(screen.queryByRole("checkbox")).toBeNull();
  expect(screen.getAllByRole("row")).toHaveLength(2);
});
