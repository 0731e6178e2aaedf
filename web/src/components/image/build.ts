/** The kinds of descriptions that an image is built of. */
export type BuildKind = "RECIPE" | "DOCKERFILE" | "REQUIREMENTS" | "ENVIRONMENT" | "DEVCONTAINER";

/** What a new description begins with. */
export const examples: Record<BuildKind, string> = {
  RECIPE: "base: python:1\npip:\n  - numpy\n",
  DOCKERFILE: "FROM python:1\nRUN pip install numpy\n",
  REQUIREMENTS: "numpy\n",
  ENVIRONMENT: "dependencies:\n  - numpy\n",
  DEVCONTAINER: '{\n  "image": "python:1",\n  "postCreateCommand": "pip install numpy"\n}\n',
};

/** Reports whether the image to install on is not a part of the description. */
export const needsBase = (kind: BuildKind) => kind === "REQUIREMENTS" || kind === "ENVIRONMENT";

/** Reads a file as base64. */
export async function toBase64(file: Blob): Promise<string> {
  const data = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  const part = 0x8000; // the number of arguments of a function is limited
  for (let i = 0; i < data.length; i += part) binary += String.fromCharCode(...data.subarray(i, i + part));
  return btoa(binary);
}
