import { NumberInput, Switch, TextInput } from "@mantine/core";
import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { nodesOf } from "../admin/usePages";
import { GroupOfSessions } from "./GroupOfSessions";
import { defaults, type LaunchDraft } from "./request";
import { Several } from "./Several";

const OthersQuery = graphql(`
  query LaunchOthers($where: SessionWhereInput) {
    sessions(first: 100, where: $where, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      edges { node { id name status } }
    }
  }
`);

interface Props {
  draft: LaunchDraft;
  agents: readonly { id: string; name: string }[];
  wrong: Record<string, string>;
  onChange: (more: Partial<LaunchDraft>) => void;
}

/** Edits when a session can start, how long it can run, and on which machines. Collapsed while it has only defaults. */
export function WhenAndWhere({ draft, agents, wrong, onChange }: Props) {
  const viewer = useViewer();
  const { data } = useLiveQuery({
    query: OthersQuery,
    variables: { where: { ownerID: viewer.user.id, statusNotIn: ["TERMINATED", "CANCELLED", "ERROR"] } },
  });
  const others = nodesOf(data?.sessions);
  const keys = Object.keys(defaults) as (keyof typeof defaults)[];
  const changed = keys.some((k) => JSON.stringify(draft[k]) !== JSON.stringify(defaults[k]) || wrong[k]);
  const errorOf = (field: string) => wrong[field] && t(wrong[field]);
  return (
    <details className="more" open={changed || undefined}>
      <summary>{t("Schedule and placement")}</summary>
      <div className="stack" style={{ paddingTop: 10 }}>
        <div className="pairs">
          <TextInput
            inputWrapperOrder={["label", "input", "description", "error"]}
            label={t("Time limit")}
            description={t("The session stops after this time. Short sessions can start earlier.")}
            placeholder={t("such as 2h")}
            value={draft.lifetime}
            error={errorOf("lifetime")}
            onChange={(e) => onChange({ lifetime: e.currentTarget.value })}
          />
          <NumberInput
            inputWrapperOrder={["label", "input", "description", "error"]}
            label={t("Priority")}
            description={t("0 to 100, higher first")}
            min={0}
            max={100}
            value={draft.priority}
            error={errorOf("priority")}
            onChange={(priority) => onChange({ priority })}
          />
        </div>
        {draft.mode === "BATCH" ? (
          <TextInput
            type="datetime-local"
            label={t("Earliest start")}
            value={draft.startsAt}
            error={errorOf("startsAt")}
            onChange={(e) => onChange({ startsAt: e.currentTarget.value })}
          />
        ) : null}
        <Several
          label={t("Start after")}
          description={t("These sessions must succeed. If one does not, the new session is cancelled.")}
          none={t("none")}
          options={others.map((s) => ({ value: s.id, label: s.name }))}
          value={draft.dependsOn}
          error={errorOf("dependsOn")}
          onChange={(dependsOn) => onChange({ dependsOn })}
        />
        <Several
          label={t("Machines")}
          none={t("any")}
          options={agents.map((a) => ({ value: a.id, label: a.name }))}
          value={draft.agents}
          error={errorOf("agents")}
          onChange={(chosen) => onChange({ agents: chosen })}
        />
        {draft.agents.length > 0 ? (
          <Switch
            label={t("Only these machines")}
            description={t("Otherwise, these machines are only preferred.")}
            checked={draft.strict}
            onChange={(e) => onChange({ strict: e.currentTarget.checked })}
          />
        ) : null}
        {wrong.strictAgents ? (
          <p className="bad" role="alert">
            {wrong.strictAgents}
          </p>
        ) : null}
        <GroupOfSessions
          project={draft.project}
          value={draft.sessionGroup}
          error={errorOf("sessionGroup")}
          onChange={(sessionGroup) => onChange({ sessionGroup })}
        />
        <Switch
          label={t("Preemptible")}
          description={t("Sessions with a higher priority can stop it, if its resource group allows that.")}
          checked={draft.preemptible}
          onChange={(e) => onChange({ preemptible: e.currentTarget.checked })}
        />
      </div>
    </details>
  );
}
