import { words } from "../../../words";

/** Names of the project types. */
export const projectTypes = words.ProjectType;
export type ProjectType = keyof typeof projectTypes;
