import { Button, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { ImageVersions } from "../../components/admin/registries/ImageVersions";
import { RegistryFields } from "../../components/admin/registries/registry";
import { StarterFields, Starters } from "../../components/admin/Starters";
import { nodesOf } from "../../components/admin/usePages";
import { Confirm } from "../../components/Confirm";
import { bytes, slotsLine } from "../../components/format";
import { FailureNote } from "../../components/Note";
import { TaskFields } from "../../components/task/task";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { word } from "../../words";
import { Registries } from "./Registries";

const ImagesQuery = graphql(
  `
  query Images {
    registries(first: 100, orderBy: [{ field: NAME }]) { edges { node { ...RegistryFields } } }
    tasks(first: 50, where: { kind: "image.scan" }, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      edges { node { subjectID ...TaskFields } }
    }
    starterImages { ...StarterFields }
    images(first: 100, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount edges { node { id name reference architecture sizeBytes minimumSlots status moved deprecated registry { id name } } }
    }
  }
`,
  [StarterFields, RegistryFields, TaskFields],
);
const RegisterImage = graphql(
  `mutation RegisterImage($input: RegisterImageInput!) { registerImage(input: $input) { image { id name } } }`,
);
const DeleteImage = graphql(`mutation DeleteImage($input: DeleteImageInput!) { deleteImage(input: $input) { id } }`);

export function Images() {
  const superadmin = useViewer().user.role === "SUPERADMIN";
  const { data, failure, refetch } = useLiveQuery({ query: ImagesQuery });
  const register = useAction(RegisterImage);
  const forget = useAction(DeleteImage);
  const [reference, setReference] = useState("");
  const [shown, setShown] = useState<{ id: string; name: string } | null>(null);
  const [gone, setGone] = useState<{ id: string; name: string } | null>(null);
  const images = (data?.images.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));

  return (
    <>
      <div className="page-head">
        <h1>{t("Images")}</h1>
        <span className="dim">{data?.images.totalCount}</span>
        <form
          className="push row"
          onSubmit={async (event) => {
            event.preventDefault();
            if (!(await register.run({ input: { reference: reference.trim() } }))) return;
            setReference("");
            refetch();
          }}
        >
          <TextInput
            aria-label={t("Image reference")}
            placeholder="registry.example:5000/name:tag"
            w={260}
            value={reference}
            disabled={!superadmin}
            onChange={(e) => setReference(e.currentTarget.value)}
          />
          <Button type="submit" variant="default" loading={register.busy} disabled={!superadmin || !reference.trim()}>
            {t("Register")}
          </Button>
        </form>
      </div>
      <FailureNote failure={failure ?? register.failure} />
      <Registries
        registries={data ? nodesOf(data.registries) : undefined}
        scans={nodesOf(data?.tasks)}
        editable={superadmin}
        onDone={refetch}
      />
      {images.length > 0 ? (
        <div className="panel scroll-x">
          <table className="grid">
            <thead>
              <tr>
                <th>{t("Image")}</th>
                <th>{t("Reference")}</th>
                <th>{t("Architecture")}</th>
                <th className="num">{t("Size")}</th>
                <th>{t("Minimum resources")}</th>
                <th>{t("State")}</th>
                <th>
                  <span className="dim">{t("Actions")}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {images.map((i) => (
                <tr key={i.id}>
                  <td className="clip">
                    <b>{i.name}</b>
                  </td>
                  <td className="clip">
                    <code>{i.reference}</code>
                  </td>
                  <td>{i.architecture}</td>
                  <td className="num nowrap">{bytes(i.sizeBytes)}</td>
                  <td>{slotsLine(i.minimumSlots)}</td>
                  <td>
                    <span className={i.status === "GONE" ? "tone-bad" : ""}>{word("ImageStatus", i.status)}</span>
                    {i.moved ? <div className="dim">{t("tag moved")}</div> : null}
                    {i.deprecated ? <div className="dim">{t("deprecated")}</div> : null}
                  </td>
                  <td className="nowrap" style={{ width: 1 }}>
                    <Button
                      variant="subtle"
                      size="compact-xs"
                      aria-label={t("Versions of {{name}}", { name: i.name })}
                      onClick={() => setShown(i)}
                    >
                      {t("Versions")}
                    </Button>
                    <Button
                      variant="subtle"
                      color="red"
                      size="compact-xs"
                      disabled={!superadmin}
                      aria-label={t("Unregister {{name}}", { name: i.name })}
                      onClick={() => setGone(i)}
                    >
                      {t("Unregister")}
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {shown ? (
        <ImageVersions
          key={shown.id}
          id={shown.id}
          name={shown.name}
          may={superadmin}
          onClose={() => setShown(null)}
          onDone={refetch}
        />
      ) : null}
      <Starters all={data?.starterImages ?? []} />
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
            refetch();
          }
        }}
      >
        {t("{{name}} can no longer be launched. It stays in its registry, and a scan registers it again.", {
          name: gone?.name ?? "",
        })}
      </Confirm>
    </>
  );
}
