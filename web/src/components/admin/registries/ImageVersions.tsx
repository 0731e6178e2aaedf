import { Button, Modal, NativeSelect, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { word } from "../../../words";
import { bytes, when } from "../../format";
import { FailureNote } from "../../Note";

const VersionsQuery = graphql(`
  query ImageVersions($id: ID!) {
    node(id: $id) { id ... on Image {
      name digest tagDigest moved tagPolicy deprecated
      versions { id digest sizeBytes createdAt }
      change {
        from to layersKept bytesKept layersAdded bytesAdded
        labels { name before after } environment { name before after }
      }
    } }
  }
`);
const UpdateImage = graphql(
  `mutation UpdateImage($input: UpdateImageInput!) { updateImage(input: $input) { image { id digest moved tagPolicy deprecated } } }`,
);
const RollbackImage = graphql(
  `mutation RollbackImage($input: RollbackImageInput!) { rollbackImage(input: $input) { image { id digest moved tagPolicy } } }`,
);
const policies = ["REGISTRY", "PINNED", "FOLLOW"] as const;
const short = (digest: string) => digest.slice(0, 19);

interface Props {
  id: string;
  name: string;
  may: boolean;
  onClose: () => void;
  onDone: () => void;
}

/** The digests that the tag of an image had, what changed, and the way back. */
export function ImageVersions({ id, name, may, onClose, onDone }: Props) {
  const { data, failure, refetch } = useLiveQuery({ query: VersionsQuery, variables: { id } });
  const update = useAction(UpdateImage);
  const rollback = useAction(RollbackImage);
  const image = data?.node && "versions" in data.node ? data.node : null;
  const [message, setMessage] = useState<string | null>(null);
  const after = () => {
    refetch();
    onDone();
  };
  return (
    <Modal opened size="lg" onClose={onClose} title={<h2>{name}</h2>} closeButtonProps={{ "aria-label": t("Close") }}>
      <FailureNote failure={failure ?? update.failure ?? rollback.failure} />
      {image ? (
        <div className="stack">
          {image.moved ? (
            <p>{t("The tag of this image has moved. The image keeps the digest that is in use.")}</p>
          ) : null}
          <table className="grid" aria-label={t("Versions")}>
            <thead>
              <tr>
                <th>{t("Digest")}</th>
                <th className="num">{t("Size")}</th>
                <th>{t("First seen")}</th>
                <th>{""}</th>
              </tr>
            </thead>
            <tbody>
              {image.versions.map((v) => (
                <tr key={v.id}>
                  <td>
                    <code title={v.digest}>{short(v.digest)}</code>
                  </td>
                  <td className="num nowrap">{bytes(v.sizeBytes)}</td>
                  <td className="dim nowrap">{when(v.createdAt)}</td>
                  <td>
                    {v.digest === image.digest ? (
                      t("In use")
                    ) : (
                      <Button
                        variant="light"
                        size="compact-xs"
                        disabled={!may}
                        loading={rollback.busy}
                        aria-label={t("Use {{digest}}", { digest: short(v.digest) })}
                        onClick={async () => {
                          if (await rollback.run({ input: { id, digest: v.digest } })) after();
                        }}
                      >
                        {t("Use this version")}
                      </Button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {image.change ? <Change change={image.change} /> : null}
          <NativeSelect
            label={t("When the tag moves")}
            disabled={!may}
            value={image.tagPolicy}
            data={policies.map((p) => ({ value: p, label: word("ImageTagPolicy", p) }))}
            onChange={async (e) => {
              const tagPolicy = policies.find((p) => p === e.currentTarget.value) ?? "REGISTRY";
              if (await update.run({ input: { id, tagPolicy } })) after();
            }}
          />
          <form
            className="row"
            onSubmit={async (event) => {
              event.preventDefault();
              if (await update.run({ input: { id, deprecated: message ?? image.deprecated } })) after();
            }}
          >
            <TextInput
              label={t("Deprecated: message for people who launch it")}
              style={{ flex: 1 }}
              disabled={!may}
              value={message ?? image.deprecated}
              onChange={(e) => setMessage(e.currentTarget.value)}
            />
            <Button type="submit" variant="default" disabled={!may || message === null} loading={update.busy}>
              {t("Save")}
            </Button>
          </form>
        </div>
      ) : null}
    </Modal>
  );
}

interface Value {
  name: string;
  before: string | null;
  after: string | null;
}

function Change({ change }: { change: ChangeOfImage }) {
  return (
    <section aria-label={t("Changes")}>
      <h3>{t("Changes from {{from}} to {{to}}", { from: short(change.from), to: short(change.to) })}</h3>
      <p>
        {t("Layers kept: {{kept}} ({{keptBytes}}). Layers added: {{added}} ({{addedBytes}}).", {
          kept: change.layersKept,
          keptBytes: bytes(change.bytesKept),
          added: change.layersAdded,
          addedBytes: bytes(change.bytesAdded),
        })}
      </p>
      <ul className="rows">
        {[...change.labels, ...change.environment].map((v) => (
          <li key={v.name}>
            <code>{v.name}</code>{" "}
            <span className="dim">
              {v.before ?? t("none")} → {v.after ?? t("none")}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface ChangeOfImage {
  from: string;
  to: string;
  layersKept: number;
  bytesKept: number;
  layersAdded: number;
  bytesAdded: number;
  labels: readonly Value[];
  environment: readonly Value[];
}
