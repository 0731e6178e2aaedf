import { createContext, useContext } from "react";

/** A saved request, or that of a session. Fields that it leaves open are null. */
export interface SavedRequest {
  image: string;
  type: "INTERACTIVE" | "BATCH" | "INFERENCE" | null;
  slots: Record<string, string>;
  command: string[] | null;
  mounts: { vfolder: string; readOnly: boolean | null }[] | null;
  project: string | null;
  resourceGroup: string | null;
  priority: number | null;
  lifetime: number | null;
  preemptible: boolean | null;
  agents: string[] | null;
  strictAgents: boolean | null;
  sessionGroup: string | null;
  diskBytes: number | null;
  tags: string[] | null;
  [more: string]: unknown;
}

/** The template or session that a launch starts from: the form sends only the differences. */
export interface LaunchBase {
  kind: "session" | "template";
  id: string;
  name: string;
  /** For a template: whether the viewer can change it. */
  mine?: boolean;
  /** For a template: the project that it is shared with. */
  shared?: string | null;
  request: SavedRequest;
}

/** The initial values of the launch sheet. */
export interface LaunchOptions {
  base?: LaunchBase;
  image?: string;
  folder?: string;
  /** Whether the viewer can only read that folder. */
  readOnly?: boolean;
  /** A batch command. Without one, the session is interactive. */
  command?: string;
  slots?: Record<string, string>;
}

export const LaunchContext = createContext<(draft?: LaunchOptions) => void>(() => undefined);

/** IDs of the sessions launched in this window. A toast reports when one runs. */
export const launchedInThisWindow = new Set<string>();

/** Opens the launch sheet. */
export const useLaunch = () => useContext(LaunchContext);
