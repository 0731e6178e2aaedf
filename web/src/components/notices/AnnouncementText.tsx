import ReactMarkdown, { type Components } from "react-markdown";

const allowed = ["p", "a", "strong", "em", "code", "ul", "ol", "li", "br", "del"];
const components: Components = {
  a: ({ href, children }) => {
    const url = href && URL.canParse(href) ? new URL(href) : null;
    if (!url || !["http:", "https:", "mailto:"].includes(url.protocol)) return <span>{children}</span>;
    return (
      <a href={url.href} target="_blank" rel="noopener noreferrer">
        {children}
      </a>
    );
  },
};

/** The Markdown of an announcement. HTML in it is shown as text, and images and headings are not shown as such. */
export default function AnnouncementText({ text }: { text: string }) {
  return (
    <div className="announcement-text">
      <ReactMarkdown allowedElements={allowed} unwrapDisallowed components={components}>
        {text}
      </ReactMarkdown>
    </div>
  );
}
