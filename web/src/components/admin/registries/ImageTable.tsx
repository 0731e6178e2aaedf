import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { graphql, type ResultOf } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { word } from "../../../words";
import { Confirm } from "../../Confirm";
import { bytes, slotsLine, when } from "../../format";
import { FilterBox } from "../Filter";
import { PagedTable } from "../Table";
import { type Node, usePages } from "../usePages";
import { Attachments } from "./Attachments";
import { ImageVersions } from "./ImageVersions";

const ImagesQuery = graphql(`
  query Images($first: Int, $after: Cursor, $where: ImageWhereInput) {
    images(first: $first, after: $after, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount pageInfo { hasNextPage endCursor }
      edges { node {
        id name reference architecture sizeBytes minimumSlots status moved deprecated signedBy sessionID
        registry { id signatureKeys }
        use { activeSessions agents lastUsedAt }
      } }
    }
  }
`);
const DeleteImage = graphql(`mutation DeleteImage($input: DeleteImageInput!) { deleteImage(input: $input) { id } }`);

type Image = Node<ResultOf<typeof ImagesQuery>["images"]>;

/** Lists the registered images, page by page, with what uses them. Another version reloads the list. */
export function ImageTable({ version, may }: { version: number; may: boolean }) {
  const [q, setQ] = useState("");
  const pages = usePages({
    query: ImagesQuery,
    variables: { where: q ? { nameContainsFold: q } : null },
    pick: (data) => data.images,
  });
  const { reload } = pages;
  useEffect(() => {
    if (version > 0) reload();
  }, [version, reload]);
  const forget = useAction(DeleteImage);
  const [shown, setShown] = useState<Image | null>(null);
  const [attached, setAttached] = useState<Image | null>(null);
  const [gone, setGone] = useState<Image | null>(null);
  const action = (label: string, name: string, onClick: () => void, red?: boolean) => (
    <Button
      variant="subtle"
      size="compact-xs"
      color={red ? "red" : undefined}
      disabled={red && !may}
      aria-label={name}
      onClick={onClick}
    >
      {label}
    </Button>
  );
  return (
    <section className="stack" aria-label={t("Registered images")}>
      <div className="row">
        <h2>{t("Registered images")}</h2>
        <span className="dim" role="status">
          {pages.total ?? ""}
        </span>
        <div className="push">
          <FilterBox label={t("Filter by name")} value={q} onChange={setQ} />
        </div>
      </div>
      <PagedTable
        label={t("Registered images")}
        pages={pages}
        empty={q ? t("No image matches") : t("No images")}
        columns={[
          {
            head: t("Image"),
            cell: (i) => (
              <>
                <b>{i.name}</b>
                <div className="dim">
                  {[i.reference.slice(0, -i.name.length - 1), i.architecture, slotsLine(i.minimumSlots)]
                    .filter(Boolean)
                    .join(" · ")}
                </div>
              </>
            ),
          },
          { head: t("Size"), num: true, cell: (i) => <span className="nowrap">{bytes(i.sizeBytes)}</span> },
          { head: t("State"), cell: (i) => <State image={i} /> },
          { head: t("Sessions"), num: true, cell: (i) => i.use.activeSessions },
          { head: t("Agents"), num: true, cell: (i) => i.use.agents },
          {
            head: t("Last used"),
            wide: true,
            cell: (i) => <span className="dim nowrap">{i.use.lastUsedAt ? when(i.use.lastUsedAt) : ""}</span>,
          },
          {
            head: "",
            num: true,
            cell: (i) => (
              <span className="nowrap">
                {action(t("Details"), t("Details of {{name}}", { name: i.name }), () => setShown(i))}
                {action(t("Attached"), t("Attached to {{name}}", { name: i.name }), () => setAttached(i))}
                {action(t("Unregister"), t("Unregister {{name}}", { name: i.name }), () => setGone(i), true)}
              </span>
            ),
          },
        ]}
      >
        {q ? null : t("Scan a registry, or register the reference of one image.")}
      </PagedTable>
      {shown ? (
        <ImageVersions
          key={shown.id}
          id={shown.id}
          name={shown.name}
          may={may}
          onClose={() => setShown(null)}
          onDone={reload}
        />
      ) : null}
      {attached ? <Attachments key={attached.id} image={attached} onClose={() => setAttached(null)} /> : null}
      <Confirm
        opened={gone !== null}
        title={t("Unregister this image?")}
        action={t("Unregister")}
        busy={forget.busy}
        failure={forget.failure}
        onClose={() => {
          forget.clear();
          setGone(null);
        }}
        onConfirm={async () => {
          if (await forget.run({ input: { id: gone!.id } })) {
            setGone(null);
            reload();
          }
        }}
      >
        {t("{{name}} can no longer be launched. It stays in its registry, and a scan registers it again.", {
          name: gone?.name ?? "",
        })}
      </Confirm>
    </section>
  );
}

/** What an administrator must know about an image before a user starts it. */
function State({ image: i }: { image: Image }) {
  return (
    <>
      <span className={i.status === "GONE" ? "tone-bad" : ""}>{word("ImageStatus", i.status)}</span>
      {i.registry?.signatureKeys && !i.signedBy && !i.sessionID ? (
        <div className="tone-bad">{t("not signed")}</div>
      ) : null}
      {i.moved ? <div className="dim">{t("tag moved")}</div> : null}
      {i.deprecated ? <div className="dim">{t("deprecated")}</div> : null}
    </>
  );
}
