/** Paths below a folder: names with slashes between them, the folder itself is empty. */
export const join = (directory: string, name: string) => (directory ? `${directory}/${name}` : name);
export const baseName = (path: string) => path.slice(path.lastIndexOf("/") + 1);
export const dirName = (path: string) => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");
