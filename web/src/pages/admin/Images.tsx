import { Button, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { ImageTable } from "../../components/admin/registries/ImageTable";
import { RegistryFields } from "../../components/admin/registries/registry";
import { StarterFields, Starters } from "../../components/admin/Starters";
import { nodesOf } from "../../components/admin/usePages";
import { FailureNote } from "../../components/Note";
import { TaskFields } from "../../components/task/task";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { Registries } from "./Registries";

const RegistriesQuery = graphql(
  `
  query Registries {
    registries(first: 100, orderBy: [{ field: NAME }]) { edges { node { ...RegistryFields } } }
    tasks(first: 50, where: { kind: "image.scan" }, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      edges { node { subjectID ...TaskFields } }
    }
    sweeps: tasks(first: 5, where: { kind: "image.sweep" }, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      edges { node { subjectID ...TaskFields } }
    }
    starterImages { ...StarterFields }
  }
`,
  [StarterFields, RegistryFields, TaskFields],
);
const RegisterImage = graphql(
  `mutation RegisterImage($input: RegisterImageInput!) { registerImage(input: $input) { image { id name } } }`,
);

export function Images() {
  const superadmin = useViewer().user.role === "SUPERADMIN";
  const { data, failure, refetch } = useLiveQuery({ query: RegistriesQuery });
  const register = useAction(RegisterImage);
  const [reference, setReference] = useState("");
  const [version, setVersion] = useState(0);
  const done = () => {
    refetch();
    setVersion((v) => v + 1);
  };

  return (
    <>
      <div className="page-head">
        <h1>{t("Images")}</h1>
        <form
          className="push row"
          onSubmit={async (event) => {
            event.preventDefault();
            if (!(await register.run({ input: { reference: reference.trim() } }))) return;
            setReference("");
            done();
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
        sweeps={nodesOf(data?.sweeps)}
        editable={superadmin}
        onDone={done}
      />
      <ImageTable version={version} may={superadmin} />
      <Starters all={data?.starterImages ?? []} />
    </>
  );
}
