import { useCallback, useEffect, useRef, useState } from "react";
import type { Attachment } from "./attach";
import type { Model, Parameters } from "./chat";

/** A column of a chat that does not exist yet. */
export interface DraftColumn {
  /** Identifies the column on the page. */
  key: number;
  model: Model;
  parameters: Parameters;
}

/** What was typed for a chat and not sent. The key of a new chat is "new". */
export interface Draft {
  prompt: string;
  attachments: Attachment[];
  /** Columns of a new chat. */
  columns: DraftColumn[];
  blind: boolean;
}

export const emptyDraft: Draft = { prompt: "", attachments: [], columns: [], blind: false };

const place = (chat: string) => `berth.chat.${chat}`;

export function readDraft(chat: string): Draft {
  try {
    return { ...emptyDraft, ...(JSON.parse(sessionStorage.getItem(place(chat)) ?? "{}") as Partial<Draft>) };
  } catch {
    return emptyDraft;
  }
}

/** Keeps a draft for a reload. If the browser's storage is full, the files are left out. */
export function writeDraft(chat: string, draft: Draft) {
  if (draft.prompt === "" && draft.attachments.length === 0 && draft.columns.length === 0) {
    sessionStorage.removeItem(place(chat));
    return;
  }
  try {
    sessionStorage.setItem(place(chat), JSON.stringify(draft));
  } catch {
    try {
      sessionStorage.setItem(place(chat), JSON.stringify({ ...draft, attachments: [] }));
    } catch {
      // Without storage, the draft is only on the page.
    }
  }
}

/** Returns the draft of a chat, which survives a reload of the page. */
export function useDraft(chat: string): [Draft, (change: Partial<Draft>) => void] {
  const [draft, setDraft] = useState(() => readDraft(chat));
  // A draft that was sent must not come back, even if the page closes before it is rendered again.
  const latest = useRef(draft);
  useEffect(() => {
    const leave = () => writeDraft(chat, latest.current);
    addEventListener("pagehide", leave);
    return () => {
      removeEventListener("pagehide", leave);
      leave();
    };
  }, [chat]);
  useEffect(() => {
    const timer = setTimeout(() => writeDraft(chat, draft), 200);
    return () => clearTimeout(timer);
  }, [chat, draft]);
  const change = useCallback((some: Partial<Draft>) => {
    latest.current = { ...latest.current, ...some };
    setDraft(latest.current);
  }, []);
  return [draft, change];
}
