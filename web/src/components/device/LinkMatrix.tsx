import { Link } from "@tanstack/react-router";
import { t } from "../../i18n";
import { trim } from "../format";
import { shortName } from "./fleet";
import { type Link as DeviceLink, linkNames, linkSigns, matrix, parents, toParents } from "./links";

interface Props {
  /** Devices of one plugin, in order. */
  devices: { id: string; deviceId: string; parent: { id: string } | null }[];
  links: readonly DeviceLink[];
  /** The device whose page shows the matrix. */
  here: string;
}

/** With more columns than this, the cells have no text; the color and the tooltip remain. */
const textlessAbove = 24;

const fastLinks = new Set(["NVLINK", "XGMI", "NOC", "SAME_BOARD"]);

/** Shows how the devices are connected to each other. */
export function LinkMatrix({ devices, links, here: page }: Props) {
  const folded = devices.length > textlessAbove ? parents(devices) : null;
  const m = matrix(
    devices.map((d) => d.deviceId),
    folded ? toParents(links, folded) : links,
  );
  const here = folded?.get(page) ?? page;
  const ids = new Map(devices.map((d) => [d.deviceId, d.id]));
  const dense = m.names.length > textlessAbove;
  if (m.names.length === 0) return <p className="dim">{t("Its plugin does not report links between devices.")}</p>;
  return (
    <div className="stack small">
      <div className="scroll-x" role="region" aria-label={t("Links")} tabIndex={0}>
        <table className={`links${dense ? " dense" : ""}`} aria-label={t("Links")}>
          <thead>
            <tr>
              <td />
              {m.names.map((name) => (
                <th key={name} scope="col" className={name === here ? "here" : undefined}>
                  {shortName(name)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {m.names.map((row) => (
              <tr key={row}>
                <th scope="row" className={row === here ? "here" : undefined}>
                  {row === page ? (
                    shortName(row)
                  ) : (
                    <Link to="/cluster/devices/$id" params={{ id: ids.get(row)! }} title={row}>
                      {shortName(row)}
                    </Link>
                  )}
                </th>
                {m.names.map((column) => {
                  if (row === column) return <td key={column} className="self" />;
                  const link = m.between(row, column);
                  if (!link)
                    return (
                      <td key={column} aria-label={t("none")}>
                        ·
                      </td>
                    );
                  const told = describeLink(link);
                  return (
                    <td
                      key={column}
                      className={`on${fastLinks.has(link.type) ? " near" : ""}`}
                      title={`${shortName(row)} – ${shortName(column)}: ${told}`}
                    >
                      <span className={dense ? "hushed" : undefined}>{linkSigns[link.type] ?? "?"}</span>
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {folded && folded.size > 0 ? (
        <p className="dim">{t("A link between partitions is shown as a link between their devices.")}</p>
      ) : null}
      <p className="dim">
        {m.kinds.map((kind) => `${linkSigns[kind] ?? "?"} ${t(linkNames[kind] ?? kind)}`).join(" · ")}
      </p>
    </div>
  );
}

function describeLink(link: DeviceLink) {
  return [
    t(linkNames[link.type] ?? link.type),
    link.gbps > 0 ? `${trim(link.gbps.toFixed(0))} Gbit/s` : "",
    t("distance {{n}}", { n: link.distance }),
    link.p2p ? t("direct memory access") : "",
  ]
    .filter(Boolean)
    .join(", ");
}
