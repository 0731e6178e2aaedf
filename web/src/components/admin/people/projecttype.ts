import { words } from "../../../words";

/** The types of projects, as people call them. */
export const projectTypes = words.ProjectType;
export type ProjectType = keyof typeof projectTypes;
