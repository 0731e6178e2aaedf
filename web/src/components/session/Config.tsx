import { Link } from "@tanstack/react-router";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { word } from "../../words";
import { amount, bySlot, bytes, duration, quote, when } from "../format";
import { Copy } from "../Note";
import { Container } from "./Container";
import { Mounts } from "./Mounts";
import type { SessionDetail } from "./session";

/** Shown for objects that were removed or that the viewer cannot see. */
const gone = () => <span className="dim">{t("not visible to you")}</span>;

/** Returns the requested scheduling and placement as labels and values, without the fields that were not requested. */
function whenAndWhere(s: SessionDetail): [string, React.ReactNode][] {
  const facts: [string, React.ReactNode][] = [];
  if (s.startsAt) facts.push([t("Earliest start"), when(s.startsAt)]);
  if (s.dependsOn.length > 0) {
    facts.push([
      t("Start after"),
      s.dependsOn.map((d, i) => (
        <span key={d.id}>
          {i > 0 ? ", " : null}
          {d.needed ? (
            <Link to="/sessions/$id" params={{ id: d.needed.id }}>
              {d.name}
            </Link>
          ) : (
            d.name
          )}
          {d.satisfied ? ` (${t("must succeed")})` : null}
        </span>
      )),
    ]);
  }
  if (s.diskBytes > 0)
    facts.push([t("Disk per container"), t("{{size}}, without folders", { size: bytes(s.diskBytes) })]);
  if (s.lifetime)
    facts.push([
      t("Time limit"),
      `${duration(s.lifetime * 1000)}${s.endsAt ? `, ${t("until {{at}}", { at: when(s.endsAt) })}` : ""}`,
    ]);
  if (s.agents.length > 0)
    facts.push([
      t("Machines"),
      `${s.agents.map((a) => a.name).join(", ")}${s.strictAgents ? "" : ` ${t("(preferred)")}`}`,
    ]);
  if (s.sessionGroup)
    facts.push([
      t("Session group"),
      `${s.sessionGroup.name} (${word("SessionGroupPlacement", s.sessionGroup.placement)}${s.sessionGroup.strict ? `, ${t("strict")}` : ""})`,
    ]);
  if (s.array)
    facts.push([
      t("Array"),
      <Link key="array" to="/sessions" search={{ array: s.array.id }}>
        {s.array.name}, {t("index {{index}}", { index: s.arrayIndex ?? "" })}
      </Link>,
    ]);
  for (const [label, list] of [
    [t("Restart of"), s.restartOf ? [s.restartOf] : []],
    [t("Restarted as"), s.restarts],
  ] as const)
    for (const other of list)
      facts.push([
        label,
        <Link key={other.id} to="/sessions/$id" params={{ id: other.id }}>
          {other.name} ({other.id})
        </Link>,
      ]);
  if (s.preemptible) facts.push([t("Preemptible"), t("yes")]);
  return facts;
}

export function Config({ session }: { session: SessionDetail }) {
  const facts: [string, React.ReactNode][] = [
    [
      t("ID"),
      <span key="id">
        <code>{session.id}</code> <Copy value={session.id} label={t("Copy ID")} />
      </span>,
    ],
    [
      t("Image"),
      <code key="image" title={session.image.digest}>
        {session.image.reference}
      </code>,
    ],
    [t("Type"), word("SessionType", session.type)],
    [
      t("Requested"),
      Object.keys(session.slots)
        .sort(bySlot)
        .map((s) => `${slotName(s)} ${amount(s, session.slots[s]!)}`)
        .join(", "),
    ],
    [
      t("Command"),
      session.command.length > 0 ? (
        <code key="command">{session.command.map(quote).join(" ")}</code>
      ) : (
        <span key="none" className="dim">
          {t("none")}
        </span>
      ),
    ],
    [
      t("Environment"),
      Object.keys(session.environment).length === 0 ? (
        <span key="none" className="dim">
          {t("none")}
        </span>
      ) : (
        <div key="environment" className="stack small">
          {Object.entries(session.environment).map(([k, v]) => (
            <code key={k}>
              {k}={v}
            </code>
          ))}
        </div>
      ),
    ],
    [t("Folders"), <Mounts key="mounts" session={session} />],
    [t("Owner"), session.owner?.email ?? gone()],
    [t("Project"), session.project?.name ?? gone()],
    [t("Resource group"), session.resourceGroup?.name ?? gone()],
    [t("Priority"), String(session.priority)],
    ...whenAndWhere(session),
    [t("Created"), when(session.createdAt)],
  ];
  return (
    <div className="panel pad stack">
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name} style={{ display: "contents" }}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {session.kernels.map((k) => (
        <Container key={k.id} kernel={k} />
      ))}
    </div>
  );
}
