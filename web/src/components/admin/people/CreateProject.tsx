import { SegmentedControl, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { FormDialog } from "../Form";
import { hasPermission, isSuper } from "../nav";
import { DomainPick, PolicyPick } from "../Pickers";
import { type ProjectType, projectTypes } from "./projecttype";

const Create = graphql(
  `mutation CreateProject($input: CreateProjectInput!) { createProject(input: $input) { project { id name } } }`,
);
const NameQuery = graphql(`query NewProjectDomain($id: ID!) { node(id: $id) { id ... on Domain { name } } }`);

export function CreateProject({
  domain: first,
  onClose,
  onDone,
}: {
  domain: string;
  onClose: () => void;
  onDone: (id: string) => void;
}) {
  const viewer = useViewer();
  const { run, busy, failure } = useAction(Create);
  const [domain, setDomain] = useState(first);
  const [draft, setDraft] = useState({
    name: "",
    description: "",
    type: "GENERAL" as ProjectType,
    policy: null as string | null,
  });
  const { data } = useLiveQuery({ query: NameQuery, variables: { id: first } });
  const set = (more: Partial<typeof draft>) => setDraft({ ...draft, ...more });
  const name = data?.node && "name" in data.node ? data.node.name : "";
  return (
    <FormDialog
      title={t("New project")}
      submit={t("Create")}
      fields={["name", "description", "domain", "type", "policy"]}
      busy={busy}
      failure={failure}
      disabled={!draft.name.trim()}
      onClose={onClose}
      onSubmit={async () => {
        const done = await run({ input: { ...draft, domain } });
        if (!done) return;
        onClose();
        onDone(done.createProject.project.id);
      }}
    >
      {(wrong) => (
        <>
          <TextInput
            label={t("Name")}
            required
            data-autofocus
            value={draft.name}
            error={wrong.name}
            onChange={(e) => set({ name: e.currentTarget.value })}
          />
          <TextInput
            label={t("Description")}
            value={draft.description}
            error={wrong.description}
            onChange={(e) => set({ description: e.currentTarget.value })}
          />
          {isSuper(viewer) || hasPermission(viewer, "CREATE", "PROJECT") ? (
            <DomainPick
              key={name}
              label={t("Domain")}
              required
              value={domain}
              chosen={{ value: first, label: name }}
              error={wrong.domain}
              onChange={(id) => id && setDomain(id)}
            />
          ) : null}
          <div className="stack small">
            <SegmentedControl
              aria-label={t("Type")}
              value={draft.type}
              onChange={(type) => set({ type: type as ProjectType })}
              data={Object.entries(projectTypes).map(([value, label]) => ({ value, label: t(label) }))}
            />
            <p className="dim">
              {draft.type === "GENERAL"
                ? t("For work: members run sessions and keep folders.")
                : t("For models that other projects use.")}
            </p>
          </div>
          <PolicyPick
            label={t("Policy")}
            description={t("Limits for all members together.")}
            placeholder={t("none")}
            value={draft.policy}
            error={wrong.policy}
            onChange={(policy) => set({ policy })}
          />
        </>
      )}
    </FormDialog>
  );
}
