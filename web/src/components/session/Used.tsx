import { useQuery } from "urql";
import { graphql } from "../../api/graphql";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { word } from "../../words";
import { bySlot, bytes, isMemory } from "../format";
import { say } from "./Chart";

const SessionUseQuery = graphql(`
  query SessionUse($id: ID!) {
    node(id: $id) {
      id
      ... on Session {
        suggestedSlots
        use { metric unit asked mean p95 peak quality }
      }
    }
  }
`);

interface Props {
  session: string;
  nameOf: (metric: string) => string;
}

/** Shows what a session used of what it requested, and the size that the next one needs. */
export function Used({ session, nameOf }: Props) {
  const [{ data }] = useQuery({
    query: SessionUseQuery,
    variables: { id: session },
    requestPolicy: "cache-and-network",
  });
  const node = data?.node && "use" in data.node ? data.node : null;
  if (!node || node.use.length === 0) return null;
  const suggested = node.suggestedSlots as Record<string, string> | null;
  const amount = (slot: string, text: string) => (isMemory(slot) ? bytes(Number(text)) : text);
  return (
    <section className="panel scroll-x" aria-label={t("Requested and used")} tabIndex={0}>
      <table className="grid">
        <thead>
          <tr>
            <th>{t("Requested and used")}</th>
            <th className="num">{t("Requested")}</th>
            <th className="num">{t("Mean")}</th>
            <th className="num">{t("95th percentile")}</th>
            <th className="num">{t("Peak")}</th>
            <th>{t("Measurement")}</th>
          </tr>
        </thead>
        <tbody>
          {node.use.map((u) => (
            <tr key={u.metric}>
              <td>{nameOf(u.metric)}</td>
              <td className="num">{u.asked > 0 ? say(u.asked, u.unit) : "–"}</td>
              {[u.mean, u.p95, u.peak].map((v, i) => (
                <td key={i} className="num">
                  {v === null ? "–" : say(v, u.unit)}
                </td>
              ))}
              <td>{word("UseQuality", u.quality)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {suggested ? (
        <p className="pad dim">
          {t("Suggested for the next session: {{slots}}.", {
            slots: Object.keys(suggested)
              .sort(bySlot)
              .map((slot) => `${slotName(slot)} ${amount(slot, suggested[slot]!)}`)
              .join(", "),
          })}
        </p>
      ) : null}
    </section>
  );
}
