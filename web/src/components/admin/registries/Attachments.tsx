import { Modal, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql, type ResultOf } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { word } from "../../../words";
import { bytes } from "../../format";
import { FailureNote } from "../../Note";

const AttachmentsQuery = graphql(`
  query ImageAttachments($id: ID!, $search: String) {
    imageAttachments(image: $id) {
      kind type format digest sizeBytes packageCount problem
      packages(search: $search, limit: 200) { name version license }
      severities { severity count }
    }
  }
`);
type Attachment = ResultOf<typeof AttachmentsQuery>["imageAttachments"][number];

interface Image {
  id: string;
  name: string;
  signedBy: string;
}

/** Signatures, SBOMs and reports of vulnerabilities that the registry has attached to an image. */
export function Attachments({ image, onClose }: { image: Image; onClose: () => void }) {
  const { id, name, signedBy } = image;
  const [search, setSearch] = useState("");
  const { data, failure } = useLiveQuery({ query: AttachmentsQuery, variables: { id, search } });
  const list = data?.imageAttachments;
  const packages = (list ?? []).flatMap((a, n) => a.packages.map((p) => ({ ...p, from: n })));
  const total = (list ?? []).reduce((sum, a) => sum + a.packageCount, 0);
  return (
    <Modal
      opened
      size="xl"
      onClose={onClose}
      title={<h2>{t("Attached to {{name}}", { name })}</h2>}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <FailureNote failure={failure} />
      {list ? (
        <div className="stack">
          {signedBy ? (
            <p>
              {t("Signed by the key")} <code>{signedBy.slice(0, 23)}</code>
            </p>
          ) : null}
          {list.length === 0 ? (
            <p className="dim">{t("Nothing is attached to this image.")}</p>
          ) : (
            <table className="grid" aria-label={t("Attachments")}>
              <thead>
                <tr>
                  <th>{t("Kind")}</th>
                  <th>{t("Format")}</th>
                  <th>{t("Content")}</th>
                  <th className="num">{t("Size")}</th>
                </tr>
              </thead>
              <tbody>
                {list.map((a, n) => (
                  <tr key={`${a.digest}${n}`}>
                    <td>{word("ImageAttachmentKind", a.kind)}</td>
                    <td>{a.format || <code>{a.type}</code>}</td>
                    <td className={a.problem ? "tone-bad" : ""}>{content(a)}</td>
                    <td className="num nowrap">{bytes(a.sizeBytes)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </div>
      ) : null}
      {total > 0 || search ? (
        <section className="stack" aria-label={t("Packages")}>
          <TextInput label={t("Search packages")} value={search} onChange={(e) => setSearch(e.currentTarget.value)} />
          <table className="grid">
            <thead>
              <tr>
                <th>{t("Package")}</th>
                <th>{t("Version")}</th>
                <th>{t("License")}</th>
              </tr>
            </thead>
            <tbody>
              {packages.map((p, n) => (
                <tr key={`${p.from} ${p.name} ${p.version} ${n}`}>
                  <td>{p.name}</td>
                  <td>{p.version}</td>
                  <td className="dim">{p.license}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      ) : null}
    </Modal>
  );
}

function content(a: Attachment): string {
  if (a.problem) return a.problem;
  if (a.kind === "SBOM") return t("Packages: {{count}}", { count: a.packageCount });
  if (a.kind !== "VULNERABILITIES") return "";
  if (a.severities.length === 0) return t("No vulnerabilities");
  return a.severities.map((s) => `${word("Severity", s.severity)}: ${s.count}`).join(" · ");
}
