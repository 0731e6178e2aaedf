import { Button } from "@mantine/core";
import { uploads } from "../../api/transfer";
import { useThrottled } from "../../hooks/useThrottled";
import { useUploads } from "../../hooks/useUploads";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import { bytes } from "../format";

/** Rows beyond this are only counted. */
const shown = 100;

export function UploadList({ folder }: { folder: string }) {
  const items = useThrottled(useUploads(uploads, folder), 150);
  if (items.length === 0) return null;
  const total = items.reduce((sum, i) => sum + i.file.size, 0);
  const sent = items.reduce((sum, i) => sum + (i.state === "done" ? i.file.size : i.sent), 0);
  const count = (state: string) => items.filter((i) => i.state === state).length;
  const urgent = { sending: 0, failed: 1, waiting: 2, stopped: 3, done: 4 };
  const rows = [...items].sort((a, b) => urgent[a.state] - urgent[b.state] || a.id - b.id).slice(0, shown);
  return (
    <section className="panel" aria-labelledby="uploads">
      <div className="panel-head">
        <h2 id="uploads">{t("Uploads")}</h2>
        <span className="dim" role="status">
          {t("{{done}} of {{all}} files", { done: count("done"), all: items.length })} · {bytes(sent)} / {bytes(total)}
          {count("failed") > 0 ? ` · ${t("{{count}} failed", { count: count("failed") })}` : ""}
        </span>
        <div className="push">
          <Button variant="subtle" onClick={() => uploads.clear(folder)}>
            {t("Clear finished")}
          </Button>
        </div>
      </div>
      <ul className="rows">
        {rows.map((i) => (
          <li key={i.id} style={{ flexWrap: "wrap" }}>
            <span className="clip" style={{ flex: "1 1 200px" }}>
              {i.path}
            </span>
            <span className="meter" style={{ width: 140 }} role="progressbar" aria-label={i.path} aria-valuemin={0} aria-valuemax={100}
              aria-valuenow={Math.round(part(i.sent, i.file.size, i.state))}>
              <i style={{ width: `${part(i.sent, i.file.size, i.state)}%` }} />
            </span>
            <span className="dim nowrap">
              {t(i.state)} · {bytes(i.file.size)}
            </span>
            {i.state === "sending" || i.state === "waiting" ? (
              <Button variant="subtle" size="compact-xs" aria-label={t("Stop {{name}}", { name: i.path })} onClick={() => uploads.stop(i.id)}>
                {t("Stop")}
              </Button>
            ) : null}
            {i.state === "failed" || i.state === "stopped" ? (
              <Button variant="subtle" size="compact-xs" aria-label={t("Go on with {{name}}", { name: i.path })} onClick={() => uploads.retry(i.id)}>
                {t("Go on")}
              </Button>
            ) : null}
            {i.failure ? (
              <div style={{ flexBasis: "100%" }}>
                <FailureNote failure={i.failure} />
              </div>
            ) : null}
          </li>
        ))}
        {items.length > shown ? <li className="dim">{t("and {{count}} more", { count: items.length - shown })}</li> : null}
      </ul>
    </section>
  );
}

const part = (sent: number, size: number, state: string) => (state === "done" ? 100 : size > 0 ? (100 * sent) / size : 0);
