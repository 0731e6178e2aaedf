import { Button, VisuallyHidden } from "@mantine/core";
import { type CSSProperties, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { t } from "../../i18n";
import { runs, type Turn } from "./chat";
import { columnName, type Head } from "./Heads";
import type { ChatStore } from "./store";
import { type TurnActions, TurnView } from "./TurnView";
import type { Picks, Step } from "./tree";

interface Props {
  /** The heads of the columns. */
  header: ReactNode;
  heads: readonly Head[];
  children?: ReactNode;
}

/** The scrolling part of a chat: all columns scroll together. It follows growing answers while it is at its end. */
export function Scroller({ header, heads, children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const flow = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  useEffect(() => {
    const inner = flow.current;
    if (!inner || typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(() => {
      const el = box.current;
      if (el && stuck.current) el.scrollTop = el.scrollHeight;
    });
    observer.observe(inner);
    return () => observer.disconnect();
  }, []);
  return (
    <div
      ref={box}
      className="chat-scroll"
      tabIndex={0}
      role="region"
      aria-label={t("Conversation")}
      data-columns={heads.length > 1 ? "many" : "one"}
      style={{ "--n": Math.max(1, heads.length) } as CSSProperties}
      onScroll={(event) => {
        const el = event.currentTarget;
        stuck.current = el.scrollHeight - el.scrollTop - el.clientHeight < 60;
      }}
    >
      <div ref={flow} className="chat-flow">
        {header}
        {children}
      </div>
    </div>
  );
}

interface TurnsProps {
  store: ChatStore;
  steps: readonly Step<Turn>[];
  heads: readonly Head[];
  picks: Picks;
  adopted: number | null;
  actions: TurnActions;
  /** Reads earlier turns; null: the first one is shown. */
  onEarlier: (() => Promise<void>) | null;
}

/** The turns of the path that is shown. */
export function Turns({ store, steps, heads, picks, adopted, actions, onEarlier }: TurnsProps) {
  const keep = useRef<{ el: Element; height: number } | null>(null);
  const top = useRef<HTMLDivElement>(null);
  const [loading, setLoading] = useState(false);
  const first = steps[0]?.turn.id;
  // Earlier turns push the shown ones down: scroll by what they are high.
  useLayoutEffect(() => {
    const { el, height } = keep.current ?? {};
    if (el && height !== undefined) el.scrollTop += el.scrollHeight - height;
    keep.current = null;
  }, [first]);

  async function earlier() {
    const el = top.current?.closest(".chat-scroll");
    keep.current = el ? { el, height: el.scrollHeight } : null;
    setLoading(true);
    await onEarlier?.();
    setLoading(false);
  }
  return (
    <>
      <div ref={top} className="chat-earlier">
        {onEarlier ? (
          <Button variant="default" loading={loading} onClick={() => void earlier()}>
            {t("Show earlier prompts")}
          </Button>
        ) : null}
      </div>
      {steps.map(({ turn, branches }, i) => (
        <TurnView
          key={turn.id}
          store={store}
          turn={turn}
          branches={branches}
          next={steps[i + 1]?.turn}
          heads={heads}
          picks={picks}
          adopted={i === steps.length - 1 ? adopted : null}
          actions={actions}
        />
      ))}
      <Announcer steps={steps} heads={heads} />
    </>
  );
}

/** Says to screen readers which models have answered, once for each answer, and not the growing text. */
function Announcer({ steps, heads }: { steps: readonly Step<Turn>[]; heads: readonly Head[] }) {
  const running = useRef(new Set<string>());
  const [text, setText] = useState("");
  useEffect(() => {
    const names: string[] = [];
    for (const { turn } of steps) {
      for (const a of turn.answers) {
        if (runs(a)) running.current.add(a.id);
        else if (running.current.delete(a.id)) {
          const at = heads.findIndex((h) => h.key === a.column);
          if (at >= 0) names.push(columnName(heads[at]!, at));
        }
      }
    }
    if (names.length > 0) setText(t("{{names}}: the answer is complete.", { names: names.join(", ") }));
  }, [steps, heads]);
  return <VisuallyHidden role="status">{text}</VisuallyHidden>;
}
