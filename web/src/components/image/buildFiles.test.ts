import { afterEach, expect, test, vi } from "vitest";
import { sendFiles } from "./buildFiles";

afterEach(() => vi.unstubAllGlobals());

const answer = (status: number, body: object, headers = {}) => new Response(JSON.stringify(body), { status, headers });

test("an archive is sent in parts, and a part that fails for a short time is sent again", async () => {
  const sizes: number[] = [];
  vi.stubGlobal("fetch", async (_: string, init: { body: Blob }) => {
    sizes.push(init.body.size);
    if (sizes.length === 2) return answer(503, { code: "UNAVAILABLE", message: "busy" }, { "Retry-After": "0.01" });
    return answer(201, { digest: `sha256:${sizes.length}` });
  });
  const seen: number[] = [];
  const part = 8 * 1024 * 1024;
  expect(await sendFiles(new Blob([new Uint8Array(part + 5)]), (n) => seen.push(n))).toEqual(["sha256:1", "sha256:3"]);
  expect(sizes).toEqual([part, 5, 5]);
  expect(seen).toEqual([part, part + 5]);
});

test("a refused part ends the upload", async () => {
  const fetch = vi.fn(async () => answer(429, { code: "RESOURCE_EXHAUSTED", message: "the limit is reached" }));
  vi.stubGlobal("fetch", fetch);
  await expect(sendFiles(new Blob(["x"]), () => {})).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
  expect(fetch).toHaveBeenCalledTimes(1);
});
