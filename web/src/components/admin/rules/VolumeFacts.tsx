import { language, t } from "../../../i18n";
import { stateWord, word } from "../../../words";
import { enforcementWord } from "../../folder/folder";
import { bytes, trim, when } from "../../format";
import { Part } from "../Panel";
import type { Volume } from "./volume";

const rate = (n: number | null, unit: (n: number) => string) => (n === null ? t("not reported") : unit(n));
const ops = (n: number) => t("{{n}} operations/s", { n: trim(n.toFixed(n < 10 ? 1 : 0)) });
const flow = (n: number) => `${bytes(n)}/s`;
const delay = (n: number) => (n < 1000 ? `${trim(n.toFixed(0))} µs` : `${trim((n / 1000).toFixed(1))} ms`);

/** Shows the state of a volume: health with its reason, free space, limits, and current throughput. */
export function VolumeFacts({ volume: v }: { volume: Volume }) {
  const p = v.performance;
  return (
    <>
      <Part title={t("State")}>
        <dl className="facts">
          <dt>{t("Health")}</dt>
          <dd>
            {stateWord(v.health).toLowerCase()}
            {v.healthMessage ? (
              <span className={v.health === "HEALTHY" ? "dim" : "bad"}> {v.healthMessage}</span>
            ) : null}
          </dd>
          <dt>{t("Type")}</dt>
          <dd>
            {v.backend} <span className="dim">{t("served by {{proxy}}", { proxy: v.proxy })}</span>
          </dd>
          <dt>{t("Space")}</dt>
          <dd>
            {v.elastic
              ? t("{{used}} used, no fixed size", { used: bytes(v.usedBytes) })
              : t("{{used}} of {{total}}", { used: bytes(v.usedBytes), total: bytes(v.totalBytes) })}
          </dd>
          <dt>{t("Files")}</dt>
          <dd>
            {v.totalInodes === null
              ? (v.usedInodes?.toLocaleString(language()) ?? t("not reported"))
              : t("{{used}} of {{total}}", {
                  used: v.usedInodes?.toLocaleString(language()) ?? "?",
                  total: v.totalInodes.toLocaleString(language()),
                })}
          </dd>
          <dt>{t("Limits")}</dt>
          <dd>
            {t(enforcementWord(v.enforcement))} <span className="dim">({word("LimitEnforcement", v.enforcement)})</span>
          </dd>
        </dl>
      </Part>
      <Part title={t("Throughput")}>
        {p ? (
          <>
            <dl className="facts">
              <dt>{t("Reads")}</dt>
              <dd>
                {rate(p.readOpsPerSecond, ops)} · {rate(p.readBytesPerSecond, flow)} ·{" "}
                {rate(p.readLatencyMicros, delay)}
              </dd>
              <dt>{t("Writes")}</dt>
              <dd>
                {rate(p.writeOpsPerSecond, ops)} · {rate(p.writeBytesPerSecond, flow)} ·{" "}
                {rate(p.writeLatencyMicros, delay)}
              </dd>
            </dl>
            <p className="dim">
              {t("average over {{n}} s, {{when}}", { n: trim(p.windowSeconds.toFixed(1)), when: when(p.at) })}
              {p.wholeCluster ? ` · ${t("of the whole storage cluster")}` : ""}
            </p>
          </>
        ) : (
          <p className="dim">{t("The storage system does not report it.")}</p>
        )}
      </Part>
    </>
  );
}
