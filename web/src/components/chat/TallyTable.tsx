import { Modal } from "@mantine/core";
import { useFocusBack } from "../../hooks/useFocusBack";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import { percent } from "../serving/serving";
import { TallyQuery } from "./chat";
import { linkName, winRate } from "./models";

/** The votes on a deployment's answers, by revision; without a deployment those of all models, the best first. */
export function TallyTable({ deployment }: { deployment?: string }) {
  const { data, failure } = useLiveQuery({ query: TallyQuery, variables: { deployment: deployment ?? null } });
  const rows = [...(data?.chatTally ?? [])].sort((a, b) => (winRate(b) ?? 0) - (winRate(a) ?? 0));
  return (
    <>
      <FailureNote failure={failure} />
      {data && rows.length === 0 ? (
        <p className="dim">{t("No votes yet. Compare answers in a chat and choose the best one.")}</p>
      ) : null}
      {rows.length > 0 ? (
        <div className="scroll-x" tabIndex={0} role="group" aria-label={t("Votes of chats")}>
          <table className="grid">
            <thead>
              <tr>
                <th scope="col">{t("Model")}</th>
                <th scope="col" className="num">
                  {t("Wins")}
                </th>
                <th scope="col" className="num">
                  {t("Losses")}
                </th>
                <th scope="col" className="num">
                  {t("Ties")}
                </th>
                <th scope="col" className="num" title={t("Ties count as half of a win.")}>
                  {t("Share of wins")}
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row, i) => (
                <tr key={i}>
                  <td>
                    {linkName(row.model)} {row.revision === null ? null : <span className="dim">r{row.revision}</span>}
                  </td>
                  <td className="num">{row.wins}</td>
                  <td className="num">{row.losses}</td>
                  <td className="num">{row.ties}</td>
                  <td className="num">{percent(winRate(row) ?? 0)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </>
  );
}

export function TallyDialog({ onClose }: { onClose: () => void }) {
  useFocusBack();
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={t("Votes of the domain")}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <TallyTable />
    </Modal>
  );
}
