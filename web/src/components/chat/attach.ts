/** A file of a prompt that is not sent yet. */
export interface Attachment {
  name: string;
  type: string;
  size: number;
  /** The content in Base64. */
  data: string;
}

export const imageTypes = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Bytes of all images, and of all texts of a prompt. */
export const mostImages = 4 << 20;
export const mostTexts = 1 << 20;
export const mostFiles = 32;

/** A file that was refused: a sentence for the page, with its values. */
export interface Refusal {
  text: string;
  values: Record<string, string>;
}

const starts: [type: string, bytes: (number | null)[]][] = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", [0x52, 0x49, 0x46, 0x46, null, null, null, null, 0x57, 0x45, 0x42, 0x50]],
];

/** Returns the type of an image by its first bytes, whatever its name says; null if it is not such an image. */
const imageType = (bytes: Uint8Array): string | null =>
  starts.find(([, start]) => start.every((b, i) => b === null || bytes[i] === b))?.[0] ?? null;

function isText(bytes: Uint8Array): boolean {
  try {
    return !new TextDecoder("utf-8", { fatal: true }).decode(bytes).includes("\0");
  } catch {
    return false;
  }
}

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  // Each call takes a part, because a call cannot have a million arguments.
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

/** Decodes the text of an attachment. */
export const textOf = (data: string): string =>
  new TextDecoder().decode(Uint8Array.from(atob(data), (c) => c.charCodeAt(0)));

/** Reads files for a prompt that has some already. Files that are too large or of another type are refused. */
export async function attach(files: readonly File[], before: readonly Attachment[]) {
  const added: Attachment[] = [];
  const refused: Refusal[] = [];
  for (const file of files) {
    const problem = await one(file, [...before, ...added], (a) => added.push(a));
    if (problem) refused.push({ text: problem, values: { name: file.name || "?" } });
  }
  return { added, refused };
}

const isImage = (a: Attachment) => a.type.startsWith("image/");
const bytesOf = (all: readonly Attachment[]) => all.reduce((sum, a) => sum + a.size, 0);

async function one(file: File, others: readonly Attachment[], add: (a: Attachment) => void): Promise<string | null> {
  if (others.length >= mostFiles) return "{{name}} was not attached: a prompt can have at most 32 files.";
  if (file.size > mostImages) return "{{name}} is too large: the images of a prompt can have 4 MiB, its texts 1 MiB.";
  const bytes = new Uint8Array(await file.arrayBuffer());
  const image = imageType(bytes);
  if (!image && file.type.startsWith("image/") && file.type !== "image/svg+xml") {
    return "{{name}} is not an image that models read: use PNG, JPEG, GIF or WebP.";
  }
  if (!image && !isText(bytes)) return "{{name}} is neither an image nor a text in UTF-8.";
  if (image && bytesOf(others.filter(isImage)) + bytes.length > mostImages) {
    return "{{name}} was not attached: the images of a prompt can have 4 MiB together.";
  }
  if (!image && bytesOf(others.filter((a) => !isImage(a))) + bytes.length > mostTexts) {
    return "{{name}} was not attached: the texts of a prompt can have 1 MiB together.";
  }
  const name = [...(file.name || "file")].slice(0, 255).join("");
  add({ name, type: image ?? "text/plain", size: bytes.length, data: toBase64(bytes) });
  return null;
}
