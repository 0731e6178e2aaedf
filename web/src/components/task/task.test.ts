import { describe, expect, it } from "vitest";
import { countsBytes, mayCancel, mayRetry } from "./task";

const task = (kind: string, status: "waiting" | "running" | "done" | "failed" | "cancelled") => ({ kind, status });

describe("what may be done with a task", () => {
  it.each([
    ["a copy that goes on", task("vfolder.copy_files", "running"), true, false],
    ["a copy that failed", task("vfolder.copy_files", "failed"), false, true],
    ["a copy that was cancelled", task("vfolder.copy_files", "cancelled"), false, true],
    ["a clone that waits", task("vfolder.clone", "waiting"), true, false],
    ["a clone that failed is tried again or given up", task("vfolder.clone", "failed"), true, true],
    ["a clone that was cancelled is gone", task("vfolder.clone", "cancelled"), false, false],
    ["a hand-over that failed is tried again or given up", task("vfolder.hand_over", "failed"), true, true],
    ["a hand-over that was cancelled can begin again", task("vfolder.hand_over", "cancelled"), false, true],
    ["a deletion is not taken back", task("vfolder.delete", "running"), false, false],
    ["a deletion that failed is tried again", task("vfolder.delete", "failed"), false, true],
    ["what is done is done", task("purge_user", "done"), false, false],
  ])("%s", (_, given, cancel, retry) => {
    expect(mayCancel(given)).toBe(cancel);
    expect(mayRetry(given)).toBe(retry);
  });
  it("counts what is copied in bytes", () => {
    expect(countsBytes("vfolder.clone")).toBe(true);
    expect(countsBytes("vfolder.delete")).toBe(false);
  });
});
