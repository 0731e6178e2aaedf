import { Button, Checkbox, Modal } from "@mantine/core";
import { useState, useSyncExternalStore } from "react";
import type { Answer, Clash, Question } from "../../api/incoming";
import { baseName } from "../../api/path";
import { incoming } from "../../api/transfer";
import { useFocusBack } from "../../hooks/useFocusBack";
import { t } from "../../i18n";
import { word } from "../../words";
import { bytes, when } from "../format";

/** The most file names that are listed; more are only counted. */
const maxNames = 8;

/** Asks what to do with files whose names are taken in the folder. */
export function TakenNames() {
  const question = useSyncExternalStore(incoming.subscribe, incoming.question);
  return question ? <Ask question={question} /> : null;
}

function Ask({ question: { folderName, count, unchanged, clashes } }: { question: Question }) {
  useFocusBack();
  const [forAll, setForAll] = useState(true);
  const first = clashes[0]!;
  const several = clashes.length > 1;
  const one = !several || !forAll;
  const answer = (label: string, what: Answer, more = {}) => (
    <Button variant="default" onClick={() => incoming.answer(what, forAll)} {...more}>
      {label}
    </Button>
  );
  return (
    <Modal
      opened
      onClose={() => incoming.cancel()}
      closeButtonProps={{ "aria-label": t("Close") }}
      title={
        several
          ? t("{{taken}} of {{count}} files already exist", { taken: clashes.length, count })
          : t("{{name}} already exists", { name: baseName(first.path) })
      }
    >
      <div className="stack">
        {one ? (
          <Both key={first.path} clash={first} folder={folderName} />
        ) : (
          <ul style={{ margin: 0, paddingLeft: 18 }} aria-label={t("Existing names")}>
            {clashes.slice(0, maxNames).map((c) => (
              <li key={c.path}>
                <code className="breaks">{c.path}</code>
              </li>
            ))}
            {clashes.length > maxNames ? (
              <li>{t("and {{count}} more", { count: clashes.length - maxNames })}</li>
            ) : null}
          </ul>
        )}
        {several ? (
          <Checkbox
            label={t("Do the same for all {{count}}", { count: clashes.length })}
            checked={forAll}
            onChange={(e) => setForAll(e.currentTarget.checked)}
          />
        ) : null}
        {unchanged > 0 ? (
          <p style={{ margin: 0 }}>
            {t("{{count}} files already exist unchanged and are not uploaded again.", { count: unchanged })}
          </p>
        ) : null}
        <p className="dim" style={{ margin: 0 }}>
          {t("Replaced files do not go to the trash. If you keep both, a number is added to the name of your file.")}
        </p>
        <div className="row" style={{ justifyContent: "flex-end", flexWrap: "wrap" }}>
          <Button variant="subtle" onClick={() => incoming.cancel()}>
            {t("Upload nothing")}
          </Button>
          {answer(t("Skip"), "skip", { "data-autofocus": true })}
          {answer(t("Keep both"), "both")}
          {answer(t("Replace"), "replace", { variant: "outline", color: "red" })}
        </div>
      </div>
    </Modal>
  );
}

/** Compares the existing file with the new one. */
function Both({ clash: { path, file, existing }, folder }: { clash: Clash; folder: string }) {
  const facts = (size: number, changed: string) => `${bytes(size)}, ${t("modified {{when}}", { when: when(changed) })}`;
  return (
    <dl className="facts">
      <dt>{t("File")}</dt>
      <dd>
        <code className="breaks">
          {folder}: {path}
        </code>
      </dd>
      <dt>{t("Existing file")}</dt>
      <dd>{existing.type === "FILE" ? facts(existing.size, existing.modifiedAt) : word("FileType", existing.type)}</dd>
      <dt>{t("Your file")}</dt>
      <dd>{facts(file.size, new Date(file.lastModified).toISOString())}</dd>
    </dl>
  );
}
