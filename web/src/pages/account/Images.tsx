import { Button, Select } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { nodesOf } from "../../components/admin/usePages";
import { Confirm } from "../../components/Confirm";
import { bytes, when } from "../../components/format";
import { BuildCaches } from "../../components/image/BuildCaches";
import { BuildImage } from "../../components/image/BuildImage";
import { Builds } from "../../components/image/Builds";
import { ImageHistory } from "../../components/image/ImageHistory";
import { shortName } from "../../components/image/name";
import { RenameImage } from "../../components/image/RenameImage";
import { Copy, Empty, FailureNote } from "../../components/Note";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const OwnImagesQuery = graphql(`
  query OwnImages($owner: ID!) {
    images(first: 100, where: { ownerID: $owner, status: ALIVE }, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      edges { node { id name reference sizeBytes addedBytes description visibility committedAt project { id name } } }
    }
    imageUsage { count bytes maxCount maxBytes }
  }
`);
const UpdateImage = graphql(
  `mutation UpdateImage($input: UpdateImageInput!) { updateImage(input: $input) { image { id visibility project { id } } } }`,
);
const DeleteOwnImage = graphql(
  `mutation DeleteOwnImage($input: DeleteImageInput!) { deleteImage(input: $input) { id } }`,
);

/** The images that one made of sessions or built, and the builds. */
export function Images() {
  const viewer = useViewer();
  const { data, failure, refetch } = useLiveQuery({ query: OwnImagesQuery, variables: { owner: viewer.user.id } });
  const [build, setBuild] = useState("");
  const [renaming, setRenaming] = useState<{ id: string; name: string } | null>(null);
  const [history, setHistory] = useState("");
  const [deleting, setDeleting] = useState<{ id: string; name: string } | null>(null);
  const update = useAction(UpdateImage);
  const remove = useAction(DeleteOwnImage);
  const images = nodesOf(data?.images);
  const usage = data?.imageUsage;

  async function share(id: string, project: string) {
    const input = project ? { id, visibility: "PROJECT" as const, project } : { id, visibility: "PRIVATE" as const };
    if (await update.run({ input })) refetch();
  }
  return (
    <>
      <div className="page-head">
        <h1>{t("My images")}</h1>
        {usage ? <span className="dim">{usageText(usage)}</span> : null}
        <BuildImage projects={viewer.projects} onStarted={setBuild} />
      </div>
      <FailureNote failure={failure ?? update.failure} />
      <section className="panel" aria-label={t("My images")}>
        {data && images.length === 0 ? (
          <Empty title={t("No images of your own")}>
            {t("Build one here, or save a running session as an image on its page.")}
          </Empty>
        ) : null}
        <ul className="rows">
          {images.map((i) => (
            <li key={i.id}>
              <div className="entry">
                <div className="row tight">
                  <b>{shortName(i.name)}</b>{" "}
                  <span className="dim">
                    {t("{{size}}, of which {{added}} are yours; saved {{at}}", {
                      size: bytes(i.sizeBytes),
                      added: bytes(i.addedBytes),
                      at: i.committedAt ? when(i.committedAt) : t("at an unknown time"),
                    })}
                  </span>
                </div>
                <div className="row tight">
                  <code className="dim">{i.reference}</code>{" "}
                  <Copy value={i.reference} label={t("Copy the reference of {{name}}", { name: shortName(i.name) })} />
                </div>
                {i.description ? <p className="dim">{i.description}</p> : null}
              </div>
              <Select
                size="xs"
                aria-label={t("Who can use {{name}}", { name: shortName(i.name) })}
                data={[
                  { value: "", label: t("Only me") },
                  ...viewer.projects.map((p) => ({ value: p.id, label: t("Project {{name}}", { name: p.name }) })),
                ]}
                value={i.project?.id ?? ""}
                allowDeselect={false}
                onChange={(id) => void share(i.id, id ?? "")}
              />
              <Button
                variant="subtle"
                size="compact-xs"
                aria-label={t("History of {{name}}", { name: shortName(i.name) })}
                onClick={() => setHistory(i.id)}
              >
                {t("History")}
              </Button>
              <Button
                variant="subtle"
                size="compact-xs"
                aria-label={t("Rename {{name}}", { name: shortName(i.name) })}
                onClick={() => setRenaming({ id: i.id, name: i.name })}
              >
                {t("Rename")}
              </Button>
              <Button
                variant="subtle"
                color="red"
                size="compact-xs"
                aria-label={t("Delete {{name}}", { name: shortName(i.name) })}
                onClick={() => setDeleting({ id: i.id, name: shortName(i.name) })}
              >
                {t("Delete")}
              </Button>
            </li>
          ))}
        </ul>
      </section>
      <Builds owner={viewer.user.id} shown={build} onShow={setBuild} onEnded={refetch} />
      <BuildCaches />
      {history ? <ImageHistory id={history} onClose={() => setHistory("")} /> : null}
      {renaming ? (
        <RenameImage
          image={renaming}
          onClose={() => setRenaming(null)}
          onDone={(name) => {
            toast({ text: t("The image is now {{name}}.", { name }) });
            refetch();
          }}
        />
      ) : null}
      <Confirm
        opened={deleting !== null}
        title={t("Delete {{name}}?", { name: deleting?.name ?? "" })}
        action={t("Delete")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => {
          remove.clear();
          setDeleting(null);
        }}
        onConfirm={async () => {
          if (!deleting || !(await remove.run({ input: { id: deleting.id } }))) return;
          toast({ text: t("{{name}} was deleted.", { name: deleting.name }) });
          setDeleting(null);
          refetch();
        }}
      >
        {t("The image is removed from its registry, and sessions can no longer start from it.")}
      </Confirm>
    </>
  );
}

function usageText(u: { count: number; bytes: number; maxCount: number | null; maxBytes: number | null }) {
  const count =
    u.maxCount === null
      ? t("{{count}} images", { count: u.count })
      : t("{{used}} of {{most}} images", { used: u.count, most: u.maxCount });
  const size =
    u.maxBytes === null
      ? bytes(u.bytes)
      : t("{{done}} of {{total}}", { done: bytes(u.bytes), total: bytes(u.maxBytes) });
  return `${count}, ${size}`;
}
