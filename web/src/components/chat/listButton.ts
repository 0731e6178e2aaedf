import { createContext, type ReactNode } from "react";

/** The button that opens the list of chats on narrow screens; null where the list is visible. */
export const ListButton = createContext<ReactNode>(null);
