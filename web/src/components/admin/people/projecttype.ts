/** The types of projects, as people call them. */
export const projectTypes = { general: "General", model_store: "Model store" } as const;
export type ProjectType = keyof typeof projectTypes;
