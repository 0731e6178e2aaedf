/** The kinds of descriptions that an image is built of. */
export type BuildKind = "RECIPE" | "DOCKERFILE" | "REQUIREMENTS" | "ENVIRONMENT" | "DEVCONTAINER" | "GIT";

/** What a new description begins with, on a registered image. */
export const examples = (image: string): Record<BuildKind, string> => ({
  RECIPE: `base: ${image}\npip:\n  - numpy\n`,
  DOCKERFILE: `FROM ${image}\nRUN pip install numpy\n`,
  REQUIREMENTS: "numpy\n",
  ENVIRONMENT: "dependencies:\n  - numpy\n",
  DEVCONTAINER: `{\n  "image": "${image}",\n  "postCreateCommand": "pip install numpy"\n}\n`,
  GIT: "",
});

/** Reports whether the image to install on is not a part of the description. */
export const needsBase = (kind: BuildKind) => kind === "REQUIREMENTS" || kind === "ENVIRONMENT";

/** Reports whether an image to install on can be named: a repository may have only a list of packages. */
export const takesBase = (kind: BuildKind) => needsBase(kind) || kind === "GIT";

/** Reads a file as base64. */
export async function toBase64(file: Blob): Promise<string> {
  const data = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  const part = 0x8000; // the number of arguments of a function is limited
  for (let i = 0; i < data.length; i += part) binary += String.fromCharCode(...data.subarray(i, i + part));
  return btoa(binary);
}

/** The fields of the form for a Git repository. */
export interface Repository {
  address: string;
  ref: string;
  directory: string;
  token: string;
}

export const noRepository: Repository = { address: "", ref: "", directory: "", token: "" };

const tokenSecret = "git-token";

/** Returns the fields of the input for a Git repository. The token is one of the secrets of the build. */
export function gitInput({ address, ref, directory, token }: Repository) {
  const git = {
    address: address.trim(),
    ...(ref.trim() ? { ref: ref.trim() } : {}),
    ...(directory.trim() ? { directory: directory.trim() } : {}),
    ...(token ? { secret: tokenSecret } : {}),
  };
  return token ? { git, secrets: { [tokenSecret]: token } } : { git };
}
