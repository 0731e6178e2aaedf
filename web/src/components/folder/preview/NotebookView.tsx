import { useMemo } from "react";
import { t } from "../../../i18n";
import { asText } from "../files";
import { type Output, parseNotebook } from "./notebook";

/** Shows a saved notebook: its source cells, and outputs that are text or images. */
export function NotebookView({ bytes, name, large }: { bytes: Uint8Array; name: string; large: boolean }) {
  const notebook = useMemo(() => parseNotebook(asText(bytes) ?? ""), [bytes]);
  if (!notebook)
    return (
      <p className="bad" role="status">
        {t("This notebook cannot be shown: it is not in format 4.")}
      </p>
    );
  return (
    <div
      className={`notebook${large ? " large" : ""}`}
      tabIndex={0}
      role="region"
      aria-label={t("Notebook {{name}}", { name })}
    >
      {notebook.cells.length === 0 ? <p className="dim">{t("The notebook has no cells.")}</p> : null}
      {notebook.cells.map((c, i) => (
        // Cells have no IDs and do not move, so the index is a stable key.
        <section key={i} className={c.kind} aria-label={t("Cell {{n}}", { n: i + 1 })}>
          {c.kind === "code" ? <span className="dim count">[{c.count ?? " "}]</span> : null}
          {c.source ? <pre>{c.source}</pre> : null}
          {c.outputs.map((o, n) => (
            <OutputView key={n} output={o} cell={i + 1} />
          ))}
        </section>
      ))}
    </div>
  );
}

function OutputView({ output, cell }: { output: Output; cell: number }) {
  if (output.kind === "image") return <img src={output.url} alt={t("Output of cell {{n}}", { n: cell })} />;
  if (output.kind === "left_out")
    return <p className="dim">{t("Not shown here: {{types}}", { types: output.types.join(", ") })}</p>;
  return <pre className={output.kind === "error" ? "output bad" : "output"}>{output.text}</pre>;
}
