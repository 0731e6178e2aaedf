import { screen, within } from "@testing-library/react";
import { useState } from "react";
import { expect, it } from "vitest";
import { stage } from "../../testing/stage";
import { type SessionRow, SessionTable } from "./SessionTable";

const row = (name: string, more: Partial<SessionRow> = {}): SessionRow => ({
  id: name,
  name,
  type: "INTERACTIVE",
  status: "RUNNING",
  result: "UNDEFINED",
  exitCode: null,
  slots: { cpu: "1", mem: "1073741824" },
  createdAt: "2026-01-02T03:04:05Z",
  startedAt: "2026-01-02T03:04:05Z",
  terminatedAt: null,
  image: { id: "i", name: "python" },
  owner: { id: "ada", email: "ada@berth.example" },
  tags: [],
  idle: { idleExempt: false, idle: null, idles: [] } as unknown as SessionRow["idle"],
  ...more,
});

function Rows({ rows, owners = false }: { rows: SessionRow[]; owners?: boolean }) {
  const [picked, pick] = useState(new Set<string>());
  return (
    <>
      <SessionTable rows={rows} picked={picked} onPick={pick} owners={owners} />
      <output>{[...picked].join(" ")}</output>
    </>
  );
}

const over = { status: "TERMINATED", terminatedAt: "2026-01-02T03:05:05Z" };

it("selects only sessions that can be stopped", async () => {
  const { user } = await stage(<Rows rows={[row("a"), row("b", over), row("c")]} />);
  await user.click(await screen.findByLabelText("Select all sessions that can be stopped"));
  expect(screen.getByRole("status").textContent).toBe("a c");
  expect(screen.getByLabelText<HTMLInputElement>("Select b").disabled).toBe(true);
  await user.click(screen.getByLabelText("Select a"));
  expect(screen.getByRole("status").textContent).toBe("c");
});

it("shows the state in English, and the exit code of a command that failed", async () => {
  await stage(
    <Rows rows={[row("a", { status: "PREPARING" }), row("b", { ...over, result: "FAILURE", exitCode: 3 })]} />,
  );
  const [, first, second] = await screen.findAllByRole("row");
  expect(within(first!).getByText("Pulling")).toBeDefined();
  const failed = second!.querySelector("[data-status]");
  expect(failed?.textContent).toBe("Ended · exit code 3");
  expect(failed?.className).toContain("tone-bad");
});

it("shows owners only in lists of several users", async () => {
  await stage(<Rows rows={[row("a")]} />);
  expect(await screen.findByText("a")).toBeDefined();
  expect(screen.queryByText("ada@berth.example")).toBeNull();
});
