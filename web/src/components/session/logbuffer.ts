export interface Chunk {
  text: string;
  offset: number;
  nextOffset: number;
}

export interface LogBuffer {
  /** Complete lines, and last the line that is still being written. */
  lines: string[];
  /** The number of the first kept line, counted from 1. */
  first: number;
  /** The byte offset of the next chunk; null before the first chunk. */
  next: number | null;
}

export const emptyLog: LogBuffer = { lines: [""], first: 1, next: null };

/** The most lines that are kept. The download contains all. */
export const keepLines = 20_000;

/** The most characters of a line that are kept. The download contains all. */
export const keepColumns = 10_000;

/** Returns the kept part of a line: without text that \r has overwritten, up to keepColumns. */
function cut(line: string): string {
  if (line.length <= keepColumns) return line;
  const end = line.replace(/\r+$/, "").lastIndexOf("\r") + 1;
  const last = line.slice(end);
  return last.length <= keepColumns ? last : `${last.slice(0, keepColumns - 1)}…`;
}

// Colors and cursor movements have no meaning in a list of lines.
const escapes = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

/**
 * Appends a chunk. After a reconnection, the server repeats chunks; the part that the buffer already has is skipped by
 * byte offset.
 */
export function append(log: LogBuffer, chunk: Chunk, keep = keepLines): LogBuffer {
  let text = chunk.text;
  if (log.next !== null && chunk.offset < log.next) {
    if (chunk.nextOffset <= log.next) return log;
    const raw = new TextEncoder().encode(text);
    // If invalid bytes were replaced, the lengths differ and the offset is unknown. Then it is better to repeat text
    // than to lose it.
    if (raw.length === chunk.nextOffset - chunk.offset) {
      text = new TextDecoder().decode(raw.subarray(log.next - chunk.offset));
    }
  }
  const pieces = text.split("\n");
  const lines = log.lines.slice(0, -1);
  lines.push(cut((log.lines.at(-1) ?? "") + pieces[0]!), ...pieces.slice(1).map(cut));
  const surplus = Math.max(0, lines.length - keep);
  return { lines: surplus ? lines.slice(surplus) : lines, first: log.first + surplus, next: chunk.nextOffset };
}

/** Returns a line as it is shown: without escape sequences, and without text that \r has overwritten. */
export function visible(line: string): string {
  const clean = line.replace(escapes, "").replace(/\r+$/, "");
  return clean.slice(clean.lastIndexOf("\r") + 1);
}
