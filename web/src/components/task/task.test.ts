import { describe, expect, it } from "vitest";
import { countsBytes, mayCancel, mayRetry } from "./task";

const task = (kind: string, status: "WAITING" | "RUNNING" | "DONE" | "FAILED" | "CANCELLED") => ({ kind, status });

describe("what may be done with a task", () => {
  it.each([
    ["a copy that goes on", task("vfolder.copy_files", "RUNNING"), true, false],
    ["a copy that failed", task("vfolder.copy_files", "FAILED"), false, true],
    ["a copy that was cancelled", task("vfolder.copy_files", "CANCELLED"), false, true],
    ["a clone that waits", task("vfolder.clone", "WAITING"), true, false],
    ["a clone that failed is tried again or given up", task("vfolder.clone", "FAILED"), true, true],
    ["a clone that was cancelled is gone", task("vfolder.clone", "CANCELLED"), false, false],
    ["a hand-over that failed is tried again or given up", task("vfolder.hand_over", "FAILED"), true, true],
    ["a hand-over that was cancelled can begin again", task("vfolder.hand_over", "CANCELLED"), false, true],
    ["a deletion is not taken back", task("vfolder.delete", "RUNNING"), false, false],
    ["a deletion that failed is tried again", task("vfolder.delete", "FAILED"), false, true],
    ["what is done is done", task("purge_user", "DONE"), false, false],
  ])("%s", (_, given, cancel, retry) => {
    expect(mayCancel(given)).toBe(cancel);
    expect(mayRetry(given)).toBe(retry);
  });
  it("counts what is copied in bytes", () => {
    expect(countsBytes("vfolder.clone")).toBe(true);
    expect(countsBytes("vfolder.delete")).toBe(false);
  });
});
