/** A message of the terminal's WebSocket: binary frames are output, text frames are JSON. See docs/http.md. */
export type Frame =
  | { type: "output"; data: Uint8Array }
  | { type: "started" }
  | { type: "exit"; code: number }
  | { type: "error"; code: string; message: string }
  | { type: "unknown" };

export function decode(data: ArrayBuffer | string): Frame {
  if (typeof data !== "string") return { type: "output", data: new Uint8Array(data).subarray(1) };
  try {
    const frame = JSON.parse(data) as Frame;
    return ["started", "exit", "error"].includes(frame.type) ? frame : { type: "unknown" };
  } catch {
    return { type: "unknown" };
  }
}

export function address(
  origin: { protocol: string; host: string },
  session: string,
  cols: number,
  rows: number,
): string {
  const scheme = origin.protocol === "https:" ? "wss" : "ws";
  return `${scheme}://${origin.host}/sessions/${encodeURIComponent(session)}/terminal?tty=1&cols=${cols}&rows=${rows}`;
}

export const resize = (cols: number, rows: number) => JSON.stringify({ type: "resize", cols, rows });
