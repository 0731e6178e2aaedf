import { createContext, useContext } from "react";

/** What the launch sheet begins with. */
export interface LaunchWish {
  image?: string;
  folder?: string;
}

export const LaunchContext = createContext<(wish?: LaunchWish) => void>(() => undefined);

/** Opens the launch sheet. */
export const useLaunch = () => useContext(LaunchContext);
