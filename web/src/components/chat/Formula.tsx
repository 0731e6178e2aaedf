import { useEffect, useRef, useState } from "react";

type Katex = typeof import("katex");

let loaded: Promise<Katex> | null = null;

/** Loads KaTeX and its fonts with the first formula. */
function load(): Promise<Katex> {
  loaded ??= Promise.all([import("katex"), import("katex/dist/katex.min.css")]).then(([katex]) => katex);
  return loaded;
}

/** The most characters of a formula that is rendered. */
const longest = 2000;

/** Options that keep a formula harmless: no links, no HTML, no huge spaces, no macros that expand without end. */
const limits = { trust: false, maxExpand: 200, maxSize: 20, strict: "ignore", throwOnError: true } as const;

/** Shows a formula. Its source stays visible if it cannot be rendered. */
export function Formula({ text, display = false }: { text: string; display?: boolean }) {
  const at = useRef<HTMLSpanElement>(null);
  const [rendered, setRendered] = useState<string | null>(null);
  useEffect(() => {
    let over = false;
    if (text.length > longest) return;
    load()
      .then((katex) => {
        if (over || !at.current) return;
        const copy = document.createElement("span");
        katex.default.render(text, copy, { ...limits, displayMode: display });
        at.current.replaceChildren(...copy.childNodes);
        setRendered(text);
      })
      .catch(() => {
        if (!over) setRendered(null);
      });
    return () => {
      over = true;
    };
  }, [text, display]);
  const shown = rendered === text;
  return (
    <span className={display ? "chat-formula display" : "chat-formula"}>
      <span ref={at} hidden={!shown} />
      {shown ? null : <code>{text}</code>}
    </span>
  );
}
