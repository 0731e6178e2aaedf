import { t } from "../../i18n";
import type { Fit } from "../device/fit";
import { slotName } from "../format";

/** Whether a request would find room now, as far as the page can see. */
export function FitNote({ fit, short }: { fit: Fit | null; short?: boolean }) {
  if (!fit) return <span className="dim">…</span>;
  if (fit.now > 0) return <span className="tone-ok">{short ? t("room now") : t("Room now on {{now}} of {{of}} agents", { now: fit.now, of: fit.of })}</span>;
  if (short) return <span className="tone-wait">{t("would wait")}</span>;
  if (fit.of === 0) return <span className="tone-wait">{t("No agent is open: it would wait.")}</span>;
  const slot = fit.why ? slotName(fit.why.slot) : "";
  return (
    <span className="tone-wait">
      {fit.why?.reason === "contiguity"
        ? t("Would wait: enough {{slot}} in sum, but not on one device.", { slot })
        : fit.why?.reason === "none"
          ? t("Would wait: no agent offers {{slot}}.", { slot })
          : t("Would wait: not enough {{slot}} free.", { slot })}
    </span>
  );
}
