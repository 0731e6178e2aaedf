import { Component, memo, type ReactNode, useDeferredValue, useMemo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remarkMath from "remark-math";
import { t } from "../../i18n";
import { type Block, split } from "./blocks";
import { Code } from "./Code";
import { Formula } from "./Formula";
import { visible } from "./visible";

/** Returns the address of a link that can be opened: http, https and mailto. */
function target(href: string | undefined): URL | null {
  if (!href || !URL.canParse(href)) return null;
  const url = new URL(href);
  return ["http:", "https:", "mailto:"].includes(url.protocol) ? url : null;
}

const where = (url: URL) => (url.protocol === "mailto:" ? url.pathname : url.host);

/**
 * What an answer can contain. Links open without a referrer. Images are never loaded, because their address could carry
 * parts of the conversation away: a link with the name of their host stands in their place.
 */
const components: Components = {
  a: ({ href, children }) => {
    const url = target(href);
    if (!url) return <span className="chat-nolink">{children}</span>;
    return (
      <a
        href={url.href}
        target="_blank"
        rel="noopener noreferrer nofollow"
        referrerPolicy="no-referrer"
        title={url.href}
      >
        {children}
      </a>
    );
  },
  img: ({ src, alt }) => {
    const url = typeof src === "string" ? target(src) : null;
    const text = alt ? `${t("Image")}: ${alt}` : t("Image");
    if (!url) return <span className="chat-image">{text}</span>;
    return (
      <a
        className="chat-image"
        href={url.href}
        target="_blank"
        rel="noopener noreferrer nofollow"
        referrerPolicy="no-referrer"
        title={url.href}
      >
        {t("{{image}} at {{host}} (not loaded)", { image: text, host: where(url) })}
      </a>
    );
  },
  pre: ({ children }) => <>{children}</>,
  code: ({ className, children }) => {
    const text = typeof children === "string" ? children : "";
    if (className?.includes("math-display")) return <Formula text={text} display />;
    if (className?.includes("math-inline")) return <Formula text={text} />;
    // Only blocks end with a line break: indented ones, because split has found the others.
    if (text.endsWith("\n") || className?.startsWith("language-")) {
      return <Code text={text.replace(/\n$/, "")} language={/language-(\S+)/.exec(className ?? "")?.[1] ?? ""} done />;
    }
    return <code>{children}</code>;
  },
  table: ({ children }) => (
    <div className="scroll-x chat-table" tabIndex={0} role="group" aria-label={t("Table")}>
      <table>{children}</table>
    </div>
  ),
  // Headings of an answer are no headings of the page.
  h1: ({ children }) => <p className="chat-h">{children}</p>,
  h2: ({ children }) => <p className="chat-h">{children}</p>,
  h3: ({ children }) => <p className="chat-h small">{children}</p>,
  h4: ({ children }) => <p className="chat-h small">{children}</p>,
  h5: ({ children }) => <p className="chat-h small">{children}</p>,
  h6: ({ children }) => <p className="chat-h small">{children}</p>,
  input: ({ checked }) => <input type="checkbox" checked={checked === true} disabled readOnly aria-label={t("Task")} />,
};

const plainly = [remarkGfm];
const withMath = [remarkGfm, remarkMath];

/** Shows the text as it is if rendering it fails. */
class Guard extends Component<{ text: string; children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };
  static getDerivedStateFromError() {
    return { failed: true };
  }
  override componentDidUpdate(before: { text: string }) {
    if (this.state.failed && before.text !== this.props.text) this.setState({ failed: false });
  }
  override render() {
    return this.state.failed ? <div className="chat-plain">{this.props.text}</div> : this.props.children;
  }
}

/** One block. Growing texts change only their last ones. */
const Part = memo(function Part({ block, done }: { block: Block; done: boolean }) {
  if (block.kind === "code") return <Code text={block.text} language={block.language} done={block.closed || done} />;
  if (block.kind === "plain") return <div className="chat-plain">{block.text}</div>;
  return (
    <Guard text={block.text}>
      <ReactMarkdown skipHtml={false} remarkPlugins={block.math ? withMath : plainly} components={components}>
        {block.text}
      </ReactMarkdown>
    </Guard>
  );
}, same);

function same(a: { block: Block; done: boolean }, b: { block: Block; done: boolean }) {
  return (
    a.block.kind === b.block.kind &&
    a.block.text === b.block.text &&
    (a.block.kind !== "code" || (a.done === b.done && a.block.closed === (b.block as typeof a.block).closed))
  );
}

/** Renders the Markdown of an answer. HTML in it is shown as text. */
export default function Markdown({ text, done }: { text: string; done: boolean }) {
  // Growing answers are rendered in small parts, between which the browser can scroll and type.
  const shown = useDeferredValue(text);
  const blocks = useMemo(() => split(visible(shown)), [shown]);
  return (
    <div className="chat-markdown prose">
      {blocks.map((block, i) => (
        <Part key={i} block={block} done={done} />
      ))}
    </div>
  );
}
