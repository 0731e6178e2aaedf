import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { memo, useRef, useSyncExternalStore } from "react";
import { uploads } from "../../api/transfer";
import { full, type Item } from "../../api/uploads";
import { useNow } from "../../hooks/useNow";
import { toast } from "../../hooks/useToasts";
import { useUploads } from "../../hooks/useUploads";
import { t } from "../../i18n";
import { Confirm } from "../Confirm";
import { bytes } from "../format";
import { FailureNote } from "../Note";
import { chosen } from "./dropped";
import { TakenNames } from "./TakenNames";

/** Further rows are only counted. */
const shown = 100;
const urgent: Record<Item["state"], number> = { failed: 0, sending: 1, missing: 2, waiting: 3, paused: 4, done: 5 };
const words: Record<Item["state"], string> = {
  failed: "failed",
  sending: "uploading",
  missing: "file must be chosen again",
  waiting: "waiting",
  paused: "paused",
  done: "done",
};

/** Shows all uploads of this browser, on every page. */
export default function UploadTray() {
  return (
    <>
      <TakenNames />
      <Tray />
    </>
  );
}

function Tray() {
  const items = useUploads(uploads, 150);
  const [small, fold] = useDisclosure(false);
  const [cancelling, cancel] = useDisclosure(false);
  if (items.length === 0) return null;
  const count = (...states: Item["state"][]) => items.filter((i) => states.includes(i.state)).length;
  const total = items.reduce((sum, i) => sum + i.size, 0);
  const sent = items.reduce((sum, i) => sum + (i.state === "done" ? i.size : i.sent), 0);
  const rows = [...items].sort((a, b) => urgent[a.state] - urgent[b.state] || a.id - b.id).slice(0, shown);
  const active = count("waiting", "sending");
  const unfinished = items.length - count("done");
  return (
    <>
      <div className="tray-space" aria-hidden="true" />
      <section className="panel tray" aria-labelledby="uploads">
        <div className="panel-head tool-bar">
          <h2 id="uploads">{t("Uploads")}</h2>
          <span className="dim" role="status">
            {t("{{done}} of {{all}} files", { done: count("done"), all: items.length })} · {bytes(sent)} /{" "}
            {bytes(total)}
            {count("failed") > 0 ? (
              <span className="bad"> · {t("{{count}} failed", { count: count("failed") })}</span>
            ) : (
              ""
            )}
          </span>
          <div className="push row tight">
            {active > 0 ? (
              <Button variant="default" size="compact-sm" onClick={() => uploads.pause()}>
                {t("Pause all")}
              </Button>
            ) : null}
            {count("paused", "failed") > 0 ? (
              <Button variant="default" size="compact-sm" onClick={() => uploads.resume()}>
                {count("paused") > 0 ? t("Resume all") : t("Retry failed uploads")}
              </Button>
            ) : null}
            {unfinished > 0 ? (
              <Button variant="subtle" color="red" size="compact-sm" onClick={cancel.open}>
                {t("Cancel all")}
              </Button>
            ) : null}
            {unfinished < items.length ? (
              <Button variant="subtle" size="compact-sm" onClick={() => uploads.clear()}>
                {t("Clear finished")}
              </Button>
            ) : null}
            <Button variant="subtle" size="compact-sm" aria-expanded={!small} onClick={fold.toggle}>
              {small ? t("Expand") : t("Minimize")}
            </Button>
          </div>
        </div>
        <Waiting />
        {items.some((i) => i.failure && full(i.failure)) ? (
          <p className="tray-note tone-wait" role="status" style={{ margin: 0 }}>
            {t(
              "No space is left: a limit is reached, or the disk is full. Free some space or ask an administrator for more, then resume. Uploaded data is kept.",
            )}
          </p>
        ) : null}
        {count("missing") > 0 ? <Missing count={count("missing")} /> : null}
        {small ? null : (
          <ul className="rows" tabIndex={0} aria-label={t("Files being uploaded")}>
            {rows.map((i) => (
              <Row key={i.id} item={i} />
            ))}
            {items.length > shown ? (
              <li className="dim">{t("and {{count}} more", { count: items.length - shown })}</li>
            ) : null}
          </ul>
        )}
      </section>
      <Confirm
        opened={cancelling}
        title={t("Cancel {{count}} uploads?", { count: unfinished })}
        action={t("Cancel uploads")}
        onClose={cancel.close}
        onConfirm={() => {
          uploads.cancel();
          cancel.close();
        }}
      >
        {t("The uploaded data of incomplete files is deleted. Complete files stay.")}
      </Confirm>
    </>
  );
}

/** Shown while the connection is lost. */
function Waiting() {
  const until = useSyncExternalStore(uploads.subscribe, uploads.retryTime);
  const now = useNow(until !== null);
  if (until === null) return null;
  return (
    <div className="tray-note row" role="status">
      <span className="tone-wait">
        {t("No connection. The next attempt is in {{n}} s. No uploaded data is lost.", {
          n: Math.max(0, Math.ceil((until - now) / 1000)),
        })}
      </span>
      <Button className="push" variant="subtle" size="compact-xs" onClick={() => uploads.reconnect()}>
        {t("Retry now")}
      </Button>
    </div>
  );
}

/** Asks the user to select the files again, which a browser requires after a reload. */
function Missing({ count }: { count: number }) {
  const files = useRef<HTMLInputElement>(null);
  const dirs = useRef<HTMLInputElement>(null);
  function take(input: HTMLInputElement) {
    const none = input.files ? uploads.attachFiles(chosen(input.files)) : 0;
    input.value = "";
    if (none > 0)
      toast({ text: t("{{count}} of these files are not interrupted uploads, or have changed.", { count: none }) });
  }
  return (
    <div className="tray-note stack small">
      <span className="tone-wait">
        {t("{{count}} uploads were interrupted when the page was closed. Choose the files again to resume.", { count })}
      </span>
      <div className="row tight">
        <Button variant="light" size="compact-sm" onClick={() => files.current?.click()}>
          {t("Choose files")}
        </Button>
        <Button variant="default" size="compact-sm" onClick={() => dirs.current?.click()}>
          {t("Choose folder")}
        </Button>
      </div>
      <input
        ref={files}
        type="file"
        multiple
        hidden
        aria-label={t("Interrupted files")}
        data-upload-again
        onChange={(e) => take(e.currentTarget)}
      />
      <input
        ref={dirs}
        type="file"
        hidden
        aria-label={t("Interrupted folder")}
        onChange={(e) => take(e.currentTarget)}
        {...{ webkitdirectory: "" }}
      />
    </div>
  );
}

/** Memoized, because only a few of the rows change at a time. */
const Row = memo(function Row({ item }: { item: Item }) {
  const part = item.state === "done" ? 100 : item.size > 0 ? (100 * item.sent) / item.size : 0;
  const act = (label: string, named: string, run: () => void) => (
    <Button variant="subtle" size="compact-xs" aria-label={named} onClick={run}>
      {label}
    </Button>
  );
  return (
    <li style={{ flexWrap: "wrap" }}>
      <span
        className="clip"
        style={{ flex: "1 1 110px" }}
        title={item.folderName ? `${item.folderName}: ${item.path}` : item.path}
      >
        {item.path}
      </span>
      <span
        className="meter"
        style={{ width: 80 }}
        role="progressbar"
        aria-label={item.path}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(part)}
      >
        <i style={{ width: `${part}%` }} />
      </span>
      <span className="dim nowrap">
        {t(words[item.state])} · {bytes(item.size)}
      </span>
      {item.state === "sending" || item.state === "waiting"
        ? act(t("Pause"), t("Pause {{name}}", { name: item.path }), () => uploads.pause(item.id))
        : null}
      {item.state === "paused"
        ? act(t("Resume"), t("Resume {{name}}", { name: item.path }), () => uploads.resume(item.id))
        : null}
      {item.state === "failed"
        ? act(t("Retry"), t("Retry {{name}}", { name: item.path }), () => uploads.resume(item.id))
        : null}
      {item.state === "done"
        ? null
        : act(t("Cancel"), t("Cancel {{name}}", { name: item.path }), () => uploads.cancel(item.id))}
      {item.failure ? (
        <div style={{ flexBasis: "100%" }}>
          <FailureNote failure={item.failure} />
        </div>
      ) : null}
    </li>
  );
});
