import { Link } from "@tanstack/react-router";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { amount } from "../format";
import { type DeviceShare, segments } from "./segments";

/** Lists the sessions that use a device, each with its share. */
export function Holders({ device }: { device: DeviceShare }) {
  const parts = segments(device);
  if (parts.length === 0) return <p className="dim">{t("Not in use.")}</p>;
  return (
    <ul className="rows">
      {parts.map((p) => (
        <li key={p.key} style={{ padding: "4px 0" }}>
          {p.session ? (
            <Link to="/sessions/$id" params={{ id: p.session.id }}>
              {p.session.name}
            </Link>
          ) : (
            <span className="dim">{t("another user")}</span>
          )}
          {p.kind === "mine" ? <span className="dim">{t("yours")}</span> : null}
          <span className="push">
            {Object.entries(p.amounts)
              .map(([s, n]) => `${amount(s, n)} ${slotName(s)}`)
              .join(" + ")}
          </span>
        </li>
      ))}
    </ul>
  );
}
