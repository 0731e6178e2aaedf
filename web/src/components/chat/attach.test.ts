import { expect, it } from "vitest";
import { attach, mostImages, mostTexts, textOf, toBase64 } from "./attach";

const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 1, 2, 3]);
const file = (name: string, content: BlobPart, type = "") => new File([content], name, { type });
const refusals = async (...files: File[]) => (await attach(files, [])).refused.map((r) => r.text);

it("reads images by their content, whatever their name says", async () => {
  const { added, refused } = await attach([file("a.txt", png, "text/plain")], []);
  expect(refused).toEqual([]);
  expect(added).toEqual([{ name: "a.txt", type: "image/png", size: 7, data: btoa("\x89PNG\x01\x02\x03") }]);
});
it("reads other files as text", async () => {
  const { added } = await attach([file("a.py", "print('é')")], []);
  expect(added[0]!.type).toBe("text/plain");
  expect(textOf(added[0]!.data)).toBe("print('é')");
});
it("reads SVG as text, because it can contain scripts", async () =>
  expect((await attach([file("a.svg", "<svg/>", "image/svg+xml")], [])).added[0]!.type).toBe("text/plain"));
it("refuses other images, other content, and files that are too large", async () => {
  expect(await refusals(file("a.bmp", "BM", "image/bmp"))).toEqual([expect.stringContaining("not an image that")]);
  expect(await refusals(file("a", new Uint8Array([0xff, 0xfe, 0])))).toEqual([expect.stringContaining("neither")]);
  expect(await refusals(file("a", "a\0b"))).toEqual([expect.stringContaining("neither")]);
  expect(await refusals(file("a", new Uint8Array(mostImages + 1)))).toEqual([expect.stringContaining("4 MiB")]);
  expect(await refusals(file("a", "a".repeat(mostTexts + 1)))).toEqual([expect.stringContaining("1 MiB")]);
});
it("limits images and texts together", async () => {
  const large = () => file("a.png", new Uint8Array([...png, ...new Uint8Array(3 << 20)]));
  const { added, refused } = await attach([large(), large(), large()], []);
  expect(added).toHaveLength(1);
  expect(refused.map((r) => r.text)).toEqual(Array(2).fill(expect.stringContaining("4 MiB together")));
});
it("encodes more bytes than a call has arguments", () =>
  expect(atob(toBase64(new Uint8Array(200_000).fill(65)))).toBe("A".repeat(200_000)));
