export type PreviewKind = "image" | "pdf" | "notebook" | "text";

/**
 * Image types that a browser draws without running scripts. It does not run the scripts of an SVG in an img element.
 */
const images: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
  bmp: "image/bmp",
  ico: "image/x-icon",
  svg: "image/svg+xml",
};

const extension = (name: string) => (name.includes(".", 1) ? name.slice(name.lastIndexOf(".") + 1).toLowerCase() : "");

/** Returns the kind of preview by file name alone. A wrong name leads to a failed preview, and never runs anything. */
export function kindOf(name: string): PreviewKind {
  const end = extension(name);
  if (Object.hasOwn(images, end)) return "image";
  if (end === "pdf") return "pdf";
  return end === "ipynb" ? "notebook" : "text";
}

/** Returns the media type of an image by file name. The server and the file cannot choose it. */
export const imageType = (name: string) => images[extension(name)] ?? "image/png";

/** Reports whether a file is also text, so that the user can switch to the text and edit it. */
export const isAlsoText = (name: string) => kindOf(name) === "notebook" || extension(name) === "svg";

/** The largest file that is fetched for a preview, in bytes. */
export const maxPreviewBytes: Record<Exclude<PreviewKind, "text">, number> = {
  image: 20 << 20,
  pdf: 50 << 20,
  notebook: 20 << 20,
};
