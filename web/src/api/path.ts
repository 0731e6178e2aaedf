/** Joins paths below a folder. Names are separated by slashes; the empty path is the folder itself. */
export const join = (directory: string, name: string) => (directory ? `${directory}/${name}` : name);
export const baseName = (path: string) => path.slice(path.lastIndexOf("/") + 1);
export const dirName = (path: string) => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");
