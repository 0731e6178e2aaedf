import { describe, expect, it } from "vitest";
import { canCancel, canRetry, countsBytes } from "./task";

const task = (kind: string, status: "WAITING" | "SCHEDULED" | "RUNNING" | "DONE" | "FAILED" | "CANCELLED") => ({
  kind,
  status,
});

describe("the actions of a task", () => {
  it.each([
    ["a running copy", task("vfolder.copy_files", "RUNNING"), true, false],
    ["a failed copy", task("vfolder.copy_files", "FAILED"), false, true],
    ["a cancelled copy", task("vfolder.copy_files", "CANCELLED"), false, true],
    ["a scheduled pull of an image", task("image.prepull", "SCHEDULED"), true, false],
    ["a waiting clone", task("vfolder.clone", "WAITING"), true, false],
    ["a failed clone can be retried or cancelled", task("vfolder.clone", "FAILED"), true, true],
    ["a cancelled clone", task("vfolder.clone", "CANCELLED"), false, false],
    ["a failed hand-over can be retried or cancelled", task("vfolder.hand_over", "FAILED"), true, true],
    ["a cancelled hand-over can be retried", task("vfolder.hand_over", "CANCELLED"), false, true],
    ["a deletion cannot be cancelled", task("vfolder.delete", "RUNNING"), false, false],
    ["a failed deletion can be retried", task("vfolder.delete", "FAILED"), false, true],
    ["a finished task", task("purge_user", "DONE"), false, false],
  ])("%s", (_, given, cancel, retry) => {
    expect(canCancel(given)).toBe(cancel);
    expect(canRetry(given)).toBe(retry);
  });
  it("counts copies in bytes", () => {
    expect(countsBytes("vfolder.clone")).toBe(true);
    expect(countsBytes("vfolder.delete")).toBe(false);
  });
});
