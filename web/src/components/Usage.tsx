import { t } from "../i18n";
import { slotName } from "../slots";
import { amount, bySlot, slotHours } from "./format";
import { Meter } from "./Meter";

interface Props {
  occupied: Record<string, string>;
  policy: { name: string; totalSlots: Record<string, string>; maxSessions: number | null } | null;
  charged: { slot: string; slotSeconds: string }[];
  sessions: number;
}

/** The viewer's usage compared with their limits, and the usage of this month. */
export function Usage({ occupied, policy, charged, sessions }: Props) {
  const limits = policy?.totalSlots ?? {};
  const slots = [...new Set([...Object.keys(occupied), ...Object.keys(limits)])].sort(bySlot);
  return (
    <aside className="stack" style={{ gap: 16 }}>
      <section className="panel" aria-labelledby="held">
        <div className="panel-head">
          <h2 id="held">{t("In use")}</h2>
          {policy ? (
            <span className="push dim">{t("limits from policy {{policy}}", { policy: policy.name })}</span>
          ) : null}
        </div>
        <div className="pad stack" style={{ padding: "12px 14px" }}>
          {policy?.maxSessions != null ? (
            <Gauge
              name={t("Sessions")}
              used={sessions}
              limit={policy.maxSessions}
              text={String(sessions)}
              most={String(policy.maxSessions)}
            />
          ) : null}
          {slots.map((slot) => (
            <Gauge
              key={slot}
              name={slotName(slot)}
              used={Number(occupied[slot] ?? 0)}
              limit={slot in limits ? Number(limits[slot]) : null}
              text={amount(slot, occupied[slot] ?? "0")}
              most={slot in limits ? amount(slot, limits[slot]!) : ""}
            />
          ))}
          {slots.length === 0 ? <span className="dim">{t("Nothing in use")}</span> : null}
        </div>
      </section>
      <section className="panel" aria-labelledby="charged">
        <div className="panel-head">
          <h2 id="charged">{t("Usage this month")}</h2>
        </div>
        <div style={{ padding: "12px 14px" }}>
          {charged.length === 0 ? <span className="dim">{t("No usage yet")}</span> : null}
          <dl className="facts">
            {[...charged]
              .sort((a, b) => bySlot(a.slot, b.slot))
              .map((u) => (
                <div key={u.slot} style={{ display: "contents" }}>
                  <dt>{slotName(u.slot)}</dt>
                  <dd>
                    {slotHours(u.slot, u.slotSeconds)}{" "}
                    {u.slot === "mem" || u.slot.endsWith(".mem") ? t("GiB-hours") : t("hours")}
                  </dd>
                </div>
              ))}
          </dl>
        </div>
      </section>
    </aside>
  );
}

function Gauge({
  name,
  used,
  limit,
  text,
  most,
}: {
  name: string;
  used: number;
  limit: number | null;
  text: string;
  most: string;
}) {
  return (
    <div>
      <div className="row">
        <span>{name}</span>
        <span className="push">
          {text}
          {limit !== null ? <span className="dim"> / {most}</span> : null}
        </span>
      </div>
      {limit !== null ? <Meter label={name} used={used} limit={limit} /> : null}
    </div>
  );
}
