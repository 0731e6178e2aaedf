import { describe, expect, it } from "vitest";
import { append, emptyLog, keepColumns, visible } from "./logbuffer";

const chunk = (text: string, offset: number) => ({
  text,
  offset,
  nextOffset: offset + new TextEncoder().encode(text).length,
});

describe("append", () => {
  it("joins lines that chunks have split", () => {
    const log = append(append(emptyLog, chunk("epoch 1\nepo", 0)), chunk("ch 2\n", 11));
    expect(log.lines).toEqual(["epoch 1", "epoch 2", ""]);
    expect(log.next).toBe(16);
  });

  it("drops chunks that a reconnection repeats", () => {
    const log = append(emptyLog, chunk("one\ntwo\n", 0));
    expect(append(log, chunk("one\ntwo\n", 0))).toBe(log);
    expect(append(log, chunk("two\nthree é\n", 4)).lines).toEqual(["one", "two", "three é", ""]);
  });

  it("keeps the newest lines and their numbers", () => {
    const log = append(emptyLog, chunk("a\nb\nc\nd\n", 0), 3);
    expect(log.lines).toEqual(["c", "d", ""]);
    expect(log.first).toBe(3);
  });
});

describe("visible", () => {
  it("truncates a long line, and continues with the next", () => {
    let log = emptyLog;
    for (let at = 0; at < 10 << 20; at += 65536) {
      log = append(log, { text: "<b>".repeat(65536 / 3 + 1).slice(0, 65536), offset: at, nextOffset: at + 65536 });
    }
    log = append(log, { text: "\nnext", offset: 10 << 20, nextOffset: (10 << 20) + 5 });
    expect(log.lines.map((l) => l.length)).toEqual([keepColumns, 4]);
    expect(log.lines[0]!.endsWith("…")).toBe(true);
  });
  it("keeps the last state of a progress line without an end", () => {
    const log = append(emptyLog, { text: `${"10%\r".repeat(100_000)}99%\r`, offset: 0, nextOffset: 400_004 });
    expect(visible(log.lines[0]!)).toBe("99%");
  });
  it("removes colors", () => expect(visible("\u001b[32mok\u001b[0m done")).toBe("ok done"));
  it("shows the last state of a progress line", () => expect(visible("10%\r50%\r100%\r")).toBe("100%"));
});
