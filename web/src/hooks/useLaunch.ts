import { createContext, useContext } from "react";

/** A saved request, or that of a session, without the fields that it leaves open. */
export interface SavedRequest {
  image: string;
  type: "INTERACTIVE" | "BATCH" | null;
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

/** What a launch takes over: the sheet sends only what differs from it. */
export interface LaunchBase {
  kind: "session" | "template";
  id: string;
  name: string;
  /** Of a template: the viewer may change it. */
  mine?: boolean;
  /** Of a template: the project that it is shared with. */
  shared?: string | null;
  request: SavedRequest;
}

/** What the launch sheet begins with. */
export interface LaunchWish {
  base?: LaunchBase;
  image?: string;
  folder?: string;
  /** Of that folder: the viewer may only read it. */
  readOnly?: boolean;
  /** A batch command; without one the session is interactive. */
  command?: string;
  slots?: Record<string, string>;
}

export const LaunchContext = createContext<(wish?: LaunchWish) => void>(() => undefined);

/** Sessions launched in this window: it says when they run. */
export const launchedHere = new Set<string>();

/** Opens the launch sheet. */
export const useLaunch = () => useContext(LaunchContext);
