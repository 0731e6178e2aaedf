import { createContext, useContext } from "react";

/** What the launch sheet begins with. */
export interface LaunchWish {
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
