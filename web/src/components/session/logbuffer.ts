export interface Chunk {
  text: string;
  offset: number;
  nextOffset: number;
}

export interface LogBuffer {
  /** Whole lines; the last entry is the line still being written. */
  lines: string[];
  /** Number of the first kept line, from 1. */
  first: number;
  /** Where the log goes on; null before the first chunk. */
  next: number | null;
}

export const emptyLog: LogBuffer = { lines: [""], first: 1, next: null };

/** More than this is for the download. */
export const keepLines = 20_000;

/** A longer line is cut; the download has all of it. */
export const keepColumns = 10_000;

/** What is kept of a line: what \r has not overwritten, up to keepColumns. */
function cut(line: string): string {
  if (line.length <= keepColumns) return line;
  const end = line.replace(/\r+$/, "").lastIndexOf("\r") + 1;
  const last = line.slice(end);
  return last.length <= keepColumns ? last : `${last.slice(0, keepColumns - 1)}…`;
}

// Colours and cursor movements have no meaning in a list of lines.
const escapes = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

/**
 * Adds a piece. After a reconnection the server repeats pieces; what is already
 * there is left out by its byte offset.
 */
export function append(log: LogBuffer, chunk: Chunk, keep = keepLines): LogBuffer {
  let text = chunk.text;
  if (log.next !== null && chunk.offset < log.next) {
    if (chunk.nextOffset <= log.next) return log;
    const raw = new TextEncoder().encode(text);
    // Replaced bytes change the length; then a repeated line is better than a lost one.
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

/** A line as it is shown: without escapes, and of text overwritten by \r only the last. */
export function visible(line: string): string {
  const clean = line.replace(escapes, "").replace(/\r+$/, "");
  return clean.slice(clean.lastIndexOf("\r") + 1);
}
