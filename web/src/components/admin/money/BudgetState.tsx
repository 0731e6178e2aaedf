import { t } from "../../../i18n";
import { when } from "../../format";
import { Meter } from "../../Meter";
import { money, share } from "../../money";
import type { Budget } from "./budget";

/** Shows how much of a budget is spent, and when its limits are reached. */
export function BudgetState({ budget: b, currency }: { budget: Budget; currency: string }) {
  const limit = b.hard ?? b.soft ?? "0";
  const s = b.status;
  return (
    <div className="stack small">
      <Meter label={t("Spent of the budget")} used={share(s.spent, limit)} limit={1} />
      <span>
        {t("{{spent}} of {{limit}} {{currency}} spent", { spent: money(s.spent), limit: money(limit), currency })}
        {s.promised !== "0" ? ` · ${t("{{amount}} promised to sessions", { amount: money(s.promised) })}` : ""}
      </span>
      <Forecast budget={b} />
    </div>
  );
}

function Forecast({ budget: b }: { budget: Budget }) {
  const s = b.status;
  if (s.hardReachedAt !== null) {
    return Date.parse(s.hardReachedAt) <= Date.now() ? (
      <b className="tone-bad">{t("The limit is reached: sessions that cost something are refused.")}</b>
    ) : (
      <span className="tone-wait">
        {t("At the rate of the last 7 days, the limit is reached at {{time}}.", { time: when(s.hardReachedAt) })}
      </span>
    );
  }
  if (s.softReachedAt !== null && b.soft !== null) {
    return Date.parse(s.softReachedAt) <= Date.now() ? (
      <span className="tone-wait">{t("The soft limit of {{amount}} is reached.", { amount: money(b.soft) })}</span>
    ) : (
      <span className="dim">
        {t("At the rate of the last 7 days, the soft limit is reached at {{time}}.", { time: when(s.softReachedAt) })}
      </span>
    );
  }
  return <span className="dim">{t("At the rate of the last 7 days, no limit is reached.")}</span>;
}

/** Returns the period of a budget in words. */
export function periodText(b: Budget): string {
  if (b.period === "MONTH") return t("every month, in {{zone}}", { zone: b.timeZone });
  if (b.endsAt === null) return t("once, since {{time}}", { time: when(b.startsAt) });
  return t("once, from {{from}} to {{to}}", { from: when(b.startsAt), to: when(b.endsAt) });
}
