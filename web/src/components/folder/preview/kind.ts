export type PreviewKind = "image" | "pdf" | "notebook" | "text";

/** What a browser draws without running anything of it. Scripts of an SVG do not run in an img. */
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

const ending = (name: string) => (name.includes(".", 1) ? name.slice(name.lastIndexOf(".") + 1).toLowerCase() : "");

/** How a file is shown, by its name alone: a wrong one shows nothing, and runs nothing. */
export function kindOf(name: string): PreviewKind {
  const end = ending(name);
  if (Object.hasOwn(images, end)) return "image";
  if (end === "pdf") return "pdf";
  return end === "ipynb" ? "notebook" : "text";
}

/** The media type of an image; never what the server or the file says. */
export const imageType = (name: string) => images[ending(name)] ?? "image/png";

/** Kinds that are text as well, which one may want to see and to edit. */
export const alsoText = (name: string) => kindOf(name) === "notebook" || ending(name) === "svg";

/** As much of a file is fetched to be shown. */
export const mostShown: Record<Exclude<PreviewKind, "text">, number> = {
  image: 20 << 20,
  pdf: 50 << 20,
  notebook: 20 << 20,
};
