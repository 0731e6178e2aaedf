import { csrf } from "../../api/auth";
import { type Failure, fromResponse } from "../../api/errors";

/** The largest archive that is a part of the request. A larger one is sent in parts before. */
export const maxInline = 640 * 1024;

const partBytes = 8 * 1024 * 1024;
const attempts = 5;

/** How long to wait before the next attempt, in milliseconds. */
const pause = (attempt: number, failure: Failure) => (failure.retryAfter ?? 2 ** attempt) * 1000;

const temporary = ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "HTTP 502", "HTTP 503", "HTTP 504"];

async function sendPart(part: Blob): Promise<string> {
  const headers = { ...csrf, "Content-Type": "application/octet-stream" };
  const response = await fetch("/images/files", { method: "POST", headers, body: part }).catch((error: Error) => {
    throw { code: "UNAVAILABLE", message: error.message } satisfies Failure;
  });
  if (!response.ok) throw await fromResponse(response);
  return ((await response.json()) as { digest: string }).digest;
}

/**
 * Sends an archive in parts, and returns their digests for buildImage. A part that fails for a short time is sent
 * again. It throws a Failure.
 */
export async function sendFiles(file: Blob, progress: (bytes: number) => void): Promise<string[]> {
  const digests: string[] = [];
  for (let at = 0; at < file.size; at += partBytes) {
    const part = file.slice(at, at + partBytes);
    for (let attempt = 0; ; attempt++) {
      try {
        digests.push(await sendPart(part));
        break;
      } catch (error) {
        const failure = error as Failure;
        const again = temporary.includes(failure.code) && (failure.code !== "RESOURCE_EXHAUSTED" || failure.retryAfter);
        if (!again || attempt + 1 === attempts) throw failure;
        await new Promise((resolve) => setTimeout(resolve, pause(attempt, failure)));
      }
    }
    progress(Math.min(at + partBytes, file.size));
  }
  return digests;
}
