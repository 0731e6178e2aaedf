import { Button, SegmentedControl, Select, Switch, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { FormDialog } from "../admin/Form";
import { nodesOf } from "../admin/usePages";

const GroupsQuery = graphql(`
  query SessionGroups($where: SessionGroupWhereInput) {
    sessionGroups(first: 100, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
      edges { node { id name placement strict } }
    }
  }
`);
const CreateGroup = graphql(`
  mutation CreateSessionGroup($input: CreateSessionGroupInput!) {
    createSessionGroup(input: $input) { sessionGroup { id name placement strict } }
  }
`);

const words = { SPREAD: "spread", PACK: "together" } as const;

interface Props {
  project: string | null;
  value: string | null;
  error?: string;
  onChange: (id: string | null) => void;
}

/** Selects a session group, whose sessions are placed apart from or near each other. */
export function GroupOfSessions({ project, value, error, onChange }: Props) {
  const viewer = useViewer();
  const { data, refetch } = useLiveQuery({
    query: GroupsQuery,
    variables: { where: { ownerID: viewer.user.id, ...(project ? { projectID: project } : {}) } },
  });
  const [making, setMaking] = useState(false);
  const groups = nodesOf(data?.sessionGroups);
  return (
    <div className="row" style={{ alignItems: "flex-end" }}>
      <Select
        style={{ flex: 1 }}
        label={t("Session group")}
        placeholder={t("none")}
        clearable
        clearButtonProps={{ "aria-label": t("Clear") }}
        value={value}
        error={error}
        onChange={onChange}
        data={groups.map((g) => ({
          value: g.id,
          label: `${g.name} (${t(words[g.placement])}${g.strict ? `, ${t("strict")}` : ""})`,
        }))}
      />
      <Button variant="default" onClick={() => setMaking(true)}>
        {t("New session group")}
      </Button>
      {making ? (
        <NewGroup
          project={project}
          onClose={() => setMaking(false)}
          onMade={(id) => {
            refetch();
            onChange(id);
          }}
        />
      ) : null}
    </div>
  );
}

function NewGroup({
  project,
  onClose,
  onMade,
}: {
  project: string | null;
  onClose: () => void;
  onMade: (id: string) => void;
}) {
  const { run, busy, failure } = useAction(CreateGroup);
  const [name, setName] = useState("");
  const [placement, setPlacement] = useState<keyof typeof words>("SPREAD");
  const [strict, setStrict] = useState(false);
  async function submit() {
    const done = await run({ input: { name: name.trim(), placement, strict, ...(project ? { project } : {}) } });
    if (!done) return;
    onMade(done.createSessionGroup.sessionGroup.id);
    onClose();
  }
  return (
    <FormDialog
      title={t("New session group")}
      submit={t("Create")}
      busy={busy}
      failure={failure}
      disabled={!name.trim()}
      onClose={onClose}
      onSubmit={() => void submit()}
      fields={["name", "placement", "strict", "project"]}
    >
      {(wrong) => (
        <>
          <TextInput
            label={t("Name")}
            required
            data-autofocus
            maxLength={64}
            value={name}
            error={wrong.name}
            onChange={(e) => setName(e.currentTarget.value)}
          />
          <SegmentedControl
            aria-label={t("Placement")}
            value={placement}
            onChange={(v) => setPlacement(v as typeof placement)}
            data={[
              { value: "SPREAD", label: t("Each session on a different machine") },
              { value: "PACK", label: t("On as few machines as possible") },
            ]}
          />
          <Switch
            label={t("Strict")}
            description={t("Otherwise, the placement is only a preference.")}
            checked={strict}
            onChange={(e) => setStrict(e.currentTarget.checked)}
          />
        </>
      )}
    </FormDialog>
  );
}
