import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useClient } from "urql";
import { pipe, subscribe } from "wonka";
import { type Failure, fromGraphQL } from "../../api/errors";
import { useGeneration } from "../../api/live";
import { type Answer, ChatQuery, ChatUpdates } from "./chat";
import { ChatStore } from "./store";

/** Turns that are read when a chat opens, and with each page of earlier ones. */
const firstTurns = 12;
const earlierTurns = 30;

export interface OpenChat {
  store: ChatStore;
  failure: Failure | null;
  /** The chat does not exist, or the viewer cannot read it. */
  missing: boolean;
  loading: boolean;
  /** Reads the turns before the loaded ones. */
  earlier: () => Promise<void>;
  reload: () => void;
}

/** Reads a chat, the newest turns first, and keeps it up to date with what the server pushes. */
export function useChat(id: string): OpenChat {
  const client = useClient();
  const generation = useGeneration();
  const [failure, setFailure] = useState<Failure | null>(null);
  const [missing, setMissing] = useState(false);
  const [loading, setLoading] = useState(true);
  const again = useRef<() => void>(() => undefined);
  const store = useMemo(() => new ChatStore(() => again.current()), [id]);

  const read = useCallback(
    async (before: string | null) => {
      const result = await client
        .query(
          ChatQuery,
          { id, last: before === null ? firstTurns : earlierTurns, before },
          { requestPolicy: "network-only" },
        )
        .toPromise();
      setLoading(false);
      setFailure(result.error ? fromGraphQL(result.error) : null);
      if (!result.data) return;
      setMissing(result.data.chat === null);
      if (!result.data.chat) return;
      const { turns, ...chat } = result.data.chat;
      store.setChat(chat);
      store.addPage(turns, before !== null);
    },
    [client, id, store],
  );
  const reload = useReload(read);
  again.current = reload;
  useEffect(() => reload(), [reload, generation]);

  useEffect(() => {
    const { unsubscribe } = pipe(
      client.subscription(ChatUpdates, { id }),
      subscribe(({ data }) => {
        const update = data?.chatUpdates;
        if (update?.answer) store.setAnswer(update.answer);
        if (update?.delta) store.addDelta(update.delta);
        if (update?.chat) again.current();
      }),
    );
    return () => {
      unsubscribe();
      store.close();
    };
  }, [client, id, store]);

  const earlier = useCallback(async () => {
    const { before } = store.shown();
    if (before !== null) await read(before);
  }, [store, read]);
  return { store, failure, missing, loading, earlier, reload };
}

/** Reads the newest turns. Calls during a reading cause one more, however many they are. */
function useReload(read: (before: null) => Promise<void>) {
  const state = useRef<"idle" | "reading" | "again">("idle");
  return useCallback(() => {
    async function run() {
      do {
        state.current = "reading";
        await read(null);
      } while ((state.current as string) === "again");
      state.current = "idle";
    }
    if (state.current === "idle") void run();
    else state.current = "again";
  }, [read]);
}

export const useShown = (store: ChatStore) => useSyncExternalStore(store.subscribe, store.shown);

/** Returns an answer, and renders again while it grows. */
export function useAnswer(store: ChatStore, answer: Answer): Answer {
  const subscribeTo = useCallback(
    (listener: () => void) => store.subscribeAnswer(answer.id, listener),
    [store, answer.id],
  );
  return useSyncExternalStore(subscribeTo, () => store.answer(answer.id)) ?? answer;
}
