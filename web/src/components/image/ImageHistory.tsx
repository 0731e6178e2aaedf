import { Modal } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { bytes, when } from "../format";
import { FailureNote } from "../Note";
import { shortName } from "./name";

const HistoryQuery = graphql(`
  query ImageCommits($id: ID!) {
    node(id: $id) { id ... on Image {
      name digest
      versions { id digest sizeBytes addedBytes createdAt base sessionID creator { id username } }
    } }
  }
`);

interface Props {
  id: string;
  onClose: () => void;
}

/** What an image was saved from: one row for each commit, the newest first. */
export function ImageHistory({ id, onClose }: Props) {
  const { data, failure } = useLiveQuery({ query: HistoryQuery, variables: { id } });
  const image = data?.node && "versions" in data.node ? data.node : null;
  return (
    <Modal
      opened
      size="xl"
      onClose={onClose}
      title={<h2>{t("History of {{name}}", { name: image ? shortName(image.name) : "" })}</h2>}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <FailureNote failure={failure} />
      {image ? (
        <table className="grid" aria-label={t("Commits")}>
          <thead>
            <tr>
              <th>{t("Saved")}</th>
              <th>{t("By")}</th>
              <th>{t("Image of the session")}</th>
              <th>{t("Session")}</th>
              <th className="num">{t("Added")}</th>
              <th className="num">{t("Size")}</th>
              <th>{t("Digest")}</th>
            </tr>
          </thead>
          <tbody>
            {image.versions.map((v) => (
              <tr key={v.id}>
                <td className="nowrap">{when(v.createdAt)}</td>
                <td>{v.creator?.username ?? ""}</td>
                <td>
                  <code>{v.base}</code>
                </td>
                <td>
                  {v.sessionID ? (
                    <Link to="/sessions/$id" params={{ id: v.sessionID }}>
                      {t("Open")}
                    </Link>
                  ) : null}
                </td>
                <td className="num nowrap">{bytes(v.addedBytes)}</td>
                <td className="num nowrap">{bytes(v.sizeBytes)}</td>
                <td>
                  <code title={v.digest}>{v.digest.slice(0, 19)}</code>
                  {v.digest === image.digest ? ` ${t("In use")}` : ""}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
    </Modal>
  );
}
