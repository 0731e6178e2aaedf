import { Button } from "@mantine/core";
import { GlobalWorkerOptions, getDocument, type PDFDocumentProxy } from "pdfjs-dist";
import worker from "pdfjs-dist/build/pdf.worker.min.mjs?url";
import { useEffect, useRef, useState } from "react";
import { t } from "../../../i18n";

GlobalWorkerOptions.workerSrc = worker;

/** The most pixels of a page, because canvases have a maximum size. Larger pages are drawn at a lower resolution. */
const maxPixels = 16e6;

/** Shows the pages of a PDF on canvases, without its scripts, links and forms. */
export default function PdfView({ bytes, name }: { bytes: Uint8Array<ArrayBuffer>; name: string }) {
  const [pdf, setPdf] = useState<PDFDocumentProxy | null>(null);
  const [broken, setBroken] = useState(false);
  const [page, setPage] = useState(1);
  useEffect(() => {
    setPdf(null);
    setBroken(false);
    setPage(1);
    let current = true;
    // Pass a copy, because the bytes are transferred to the worker.
    const task = getDocument({ data: bytes.slice(), isEvalSupported: false, enableXfa: false });
    task.promise.then(
      (read) => current && setPdf(read),
      () => current && setBroken(true),
    );
    return () => {
      current = false;
      void task.destroy();
    };
  }, [bytes]);
  if (broken)
    return (
      <p className="bad" role="status">
        {t("This file cannot be shown: it is damaged, protected with a password, or not a PDF.")}
      </p>
    );
  if (!pdf)
    return (
      <p className="dim" role="status">
        {t("Loading…")}
      </p>
    );
  return (
    <div className="stack small">
      <div className="row">
        <Button variant="default" size="compact-xs" disabled={page <= 1} onClick={() => setPage(page - 1)}>
          {t("Previous page")}
        </Button>
        <span role="status">{t("Page {{n}} of {{total}}", { n: page, total: pdf.numPages })}</span>
        <Button variant="default" size="compact-xs" disabled={page >= pdf.numPages} onClick={() => setPage(page + 1)}>
          {t("Next page")}
        </Button>
      </div>
      <Sheet pdf={pdf} page={page} label={t("Page {{n}} of {{name}}", { n: page, name })} />
    </div>
  );
}

function Sheet({ pdf, page, label }: { pdf: PDFDocumentProxy; page: number; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    const stop = new AbortController();
    setBroken(false);
    void (async () => {
      const sheet = await pdf.getPage(page);
      const el = canvas.current;
      if (stop.signal.aborted || !el) return;
      const plain = sheet.getViewport({ scale: 1 });
      const wanted = (el.parentElement!.clientWidth * devicePixelRatio) / plain.width;
      const viewport = sheet.getViewport({
        scale: Math.min(wanted, Math.sqrt(maxPixels / (plain.width * plain.height))),
      });
      el.width = Math.floor(viewport.width);
      el.height = Math.floor(viewport.height);
      const drawing = sheet.render({ canvas: el, viewport });
      stop.signal.addEventListener("abort", () => drawing.cancel());
      await drawing.promise;
    })().catch(() => stop.signal.aborted || setBroken(true));
    return () => stop.abort();
  }, [pdf, page]);
  return (
    <>
      {broken ? (
        <p className="bad" role="status">
          {t("This page cannot be shown.")}
        </p>
      ) : null}
      <div className="sheet">
        <canvas ref={canvas} role="img" aria-label={label} />
      </div>
    </>
  );
}
