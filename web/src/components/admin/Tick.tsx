import { t } from "../../i18n";

/** Shows yes or no in a cell of a matrix. */
export const Tick = ({ on }: { on: boolean }) =>
  on ? (
    <span className="tone-ok" role="img" aria-label={t("yes")}>
      ✓
    </span>
  ) : (
    <span className="dim" role="img" aria-label={t("no")}>
      –
    </span>
  );
