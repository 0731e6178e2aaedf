import { Button, Modal, SegmentedControl } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { lazy, Suspense, useEffect, useState } from "react";
import type { FileEntry } from "../../../api/files";
import { useFocusBack } from "../../../hooks/useFocusBack";
import { t } from "../../../i18n";
import { bytes as size } from "../../format";
import { FailureNote } from "../../Note";
import type { FileStore } from "../store";
import { TextView } from "../TextView";
import { imageType, isAlsoText, kindOf, maxPreviewBytes } from "./kind";
import { NotebookView } from "./NotebookView";
import { useBytes } from "./useBytes";

const PdfView = lazy(() => import("./PdfView"));

interface Props {
  store: FileStore;
  file: FileEntry;
  writable: boolean;
  onSaved: () => void;
}

/** Shows the content of a file: editable text, an image, a PDF or a notebook. No content is executed. */
export function Preview({ store, file, writable, onSaved }: Props) {
  const [as, setAs] = useState<"shown" | "text">("shown");
  const [large, enlarge] = useDisclosure(false);
  const kind = kindOf(file.name);
  const text = <TextView store={store} file={file} writable={writable} onSaved={onSaved} />;
  if (kind === "text") return text;
  return (
    <>
      <div className="row">
        {isAlsoText(file.name) ? (
          <SegmentedControl
            size="xs"
            aria-label={t("View")}
            value={as}
            onChange={(v) => setAs(v as typeof as)}
            data={[
              { value: "shown", label: t("Preview") },
              { value: "text", label: t("Text") },
            ]}
          />
        ) : null}
        {as === "shown" ? (
          <Button
            className="push"
            variant="subtle"
            size="compact-xs"
            aria-label={t("Enlarge {{name}}", { name: file.name })}
            onClick={enlarge.open}
          >
            {t("Enlarge")}
          </Button>
        ) : null}
      </div>
      {as === "text" ? text : <Shown store={store} file={file} />}
      {large ? <Large store={store} file={file} onClose={enlarge.close} /> : null}
    </>
  );
}

function Large({ store, file, onClose }: Pick<Props, "store" | "file"> & { onClose: () => void }) {
  useFocusBack();
  return (
    <Modal
      opened
      onClose={onClose}
      size="min(1100px, 100%)"
      title={file.name}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <Shown store={store} file={file} large />
    </Modal>
  );
}

function Shown({ store, file, large = false }: Pick<Props, "store" | "file"> & { large?: boolean }) {
  const kind = kindOf(file.name);
  const most = maxPreviewBytes[kind === "text" ? "image" : kind];
  const { bytes, big, failure } = useBytes(store, file, most);
  if (failure) return <FailureNote failure={failure} what={t("The file could not be loaded")} />;
  if (big)
    return (
      <p className="dim">
        {t("Files of this type are shown up to {{limit}}. Download the file to see it.", { limit: size(most) })}
      </p>
    );
  if (!bytes)
    return (
      <p className="dim" role="status">
        {t("Loading…")}
      </p>
    );
  if (kind === "image") return <Picture bytes={bytes} name={file.name} large={large} />;
  if (kind === "notebook") return <NotebookView bytes={bytes} name={file.name} large={large} />;
  return (
    <Suspense
      fallback={
        <p className="dim" role="status">
          {t("Loading…")}
        </p>
      }
    >
      <PdfView bytes={bytes} name={file.name} />
    </Suspense>
  );
}

/** The content security policy of the page allows data: images, but none from other origins. */
function Picture({ bytes, name, large }: { bytes: Uint8Array<ArrayBuffer>; name: string; large: boolean }) {
  const [url, setUrl] = useState<string | null>(null);
  const [broken, setBroken] = useState(false);
  const [facts, setFacts] = useState("");
  useEffect(() => {
    setBroken(false);
    const reader = new FileReader();
    reader.onload = () => setUrl(reader.result as string);
    reader.readAsDataURL(new Blob([bytes], { type: imageType(name) }));
    return () => reader.abort();
  }, [bytes, name]);
  if (broken)
    return (
      <p className="bad" role="status">
        {t("This file cannot be shown: it is not the image type that its name says.")}
      </p>
    );
  if (!url) return null;
  return (
    <figure className={`picture${large ? " large" : ""}`}>
      <img
        src={url}
        alt={name}
        onError={() => setBroken(true)}
        onLoad={(e) => setFacts(`${e.currentTarget.naturalWidth} × ${e.currentTarget.naturalHeight}`)}
      />
      <figcaption className="dim">{facts}</figcaption>
    </figure>
  );
}
