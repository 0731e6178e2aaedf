import { toJsxRuntime } from "hast-util-to-jsx-runtime";
import { type ReactNode, useEffect, useState } from "react";
import { Fragment, jsx, jsxs } from "react/jsx-runtime";
import { t } from "../../i18n";
import { Copy } from "../Note";

/** The most characters that are highlighted. */
const longest = 50_000;

/** Returns highlighted code; null if the language is not known. */
async function highlight(text: string, language: string): Promise<ReactNode | null> {
  const { common, createLowlight } = await import("lowlight");
  const lowlight = createLowlight(common);
  if (!lowlight.registered(language)) return null;
  return toJsxRuntime(lowlight.highlight(language, text), { Fragment, jsx, jsxs });
}

/** A block of code with a button that copies it. It is highlighted when it is complete. */
export function Code({ text, language, done }: { text: string; language: string; done: boolean }) {
  const [colored, setColored] = useState<{ text: string; node: ReactNode } | null>(null);
  const name = language.toLowerCase();
  useEffect(() => {
    if (!done || name === "" || text.length > longest) return;
    let over = false;
    highlight(text, name).then(
      (node) => {
        if (!over && node) setColored({ text, node });
      },
      // Without the highlighter, the code stays as it is.
      () => undefined,
    );
    return () => {
      over = true;
    };
  }, [text, name, done]);
  return (
    <div className="chat-code">
      <div className="chat-code-head">
        <span className="dim">{language}</span>
        <Copy value={text} label={t("Copy code")} />
      </div>
      <pre tabIndex={0} role="group" aria-label={t("Code")}>
        <code>{colored?.text === text ? colored.node : text}</code>
      </pre>
    </div>
  );
}
