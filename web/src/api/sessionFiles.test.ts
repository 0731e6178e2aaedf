import { afterEach, expect, it, vi } from "vitest";
import { addressOf, changeFiles, entryOf, isSession, sessionFilesID, sessionPage } from "./sessionFiles";

afterEach(() => vi.unstubAllGlobals());

it("distinguishes sessions from folders", () => {
  expect(isSession(sessionFilesID("s1", null))).toBe(true);
  expect(isSession("0190-folder")).toBe(false);
});

it("builds URLs for other containers, and escapes paths", () => {
  expect(addressOf(sessionFilesID("s1", null), "/content", { path: "/a&b=ü#?.txt" })).toBe(
    "/sessions/s1/files/content?path=%2Fa%26b%3D%C3%BC%23%3F.txt",
  );
  expect(addressOf(sessionFilesID("s1", "k2"), "", { path: "/", after: null })).toBe(
    "/sessions/s1/files?path=%2F&kernel=k2",
  );
});

it("opens only links to directories as a directory", () => {
  const link = {
    name: "l",
    path: "/home/l",
    type: "SYMLINK",
    size: 0,
    mode: "lrwxrwxrwx",
    modifiedAt: "2026-01-02T03:04:05Z",
  };
  expect(entryOf({ ...link, target: "/data", targetType: "DIRECTORY" })).toMatchObject({ path: "home/l", opens: true });
  expect(entryOf({ ...link, target: "/nowhere" })).toMatchObject({ type: "SYMLINK", opens: false });
  expect(entryOf({ ...link, type: "SOMETHING" }).type).toBe("OTHER");
});

it("reads pages, and throws the error of the server", async () => {
  const answer = vi.fn();
  vi.stubGlobal("fetch", answer);
  answer.mockResolvedValueOnce(Response.json({ path: "/x", home: "/home/work", files: [], next: "6162" }));
  expect(await sessionPage("session:s1", "x", 10, null)).toEqual({ files: [], cursor: "6162" });
  expect(answer.mock.calls[0]?.[0]).toBe("/sessions/s1/files?path=%2Fx&first=10");
  answer.mockResolvedValueOnce(
    Response.json({ code: "NOT_FOUND", detail: '"/x" not found' }, { status: 404, statusText: "Not Found" }),
  );
  await expect(sessionPage("session:s1", "x", 10, null)).rejects.toMatchObject({
    code: "NOT_FOUND",
    message: '"/x" not found',
  });
});

it("returns a result for each path", async () => {
  const answer = vi
    .fn()
    .mockResolvedValue(
      Response.json({ results: [{ path: "/a" }, { path: "/b", code: "ALREADY_EXISTS", error: "exists" }] }),
    );
  vi.stubGlobal("fetch", answer);
  expect(await changeFiles("session:s1", "directories", { paths: ["/a", "/b"] })).toEqual([
    { path: "a", error: null },
    { path: "b", error: "exists" },
  ]);
  expect(answer.mock.calls[0]?.[1]).toMatchObject({ method: "POST", headers: { "X-Berth-CSRF": "1" } });
});
