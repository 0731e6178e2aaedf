/** The name of an image that was made of a session without the path of its owner; other names stay. */
export const shortName = (name: string) => (name.startsWith("users/") ? name.slice(name.lastIndexOf("/") + 1) : name);
