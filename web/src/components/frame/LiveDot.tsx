import { useLiveState } from "../../api/live";
import { t } from "../../i18n";

const words = { live: "live", connecting: "connecting", reconnecting: "reconnecting" } as const;

export function LiveDot() {
  const state = useLiveState();
  return (
    <div className={`live ${state}`} role="status" title={t("This page updates automatically while “live” is shown.")}>
      <i aria-hidden="true" />
      <span>{t(words[state])}</span>
    </div>
  );
}
