import { NumberInput, Switch, TextInput } from "@mantine/core";
import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { nodesOf } from "../admin/usePages";
import { GroupOfSessions } from "./GroupOfSessions";
import { usual, type Wish } from "./request";
import { Several } from "./Several";

const OthersQuery = graphql(`
  query LaunchOthers($where: SessionWhereInput) {
    sessions(first: 100, where: $where, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      edges { node { id name status } }
    }
  }
`);

interface Props {
  wish: Wish;
  agents: readonly { id: string; name: string }[];
  wrong: Record<string, string>;
  onChange: (more: Partial<Wish>) => void;
}

/** Edits when a session can start, how long it can run, and on which machines. Collapsed while it has only defaults. */
export function WhenAndWhere({ wish, agents, wrong, onChange }: Props) {
  const viewer = useViewer();
  const { data } = useLiveQuery({
    query: OthersQuery,
    variables: { where: { ownerID: viewer.user.id, statusNotIn: ["TERMINATED", "CANCELLED", "ERROR"] } },
  });
  const others = nodesOf(data?.sessions);
  const keys = Object.keys(usual) as (keyof typeof usual)[];
  const asked = keys.some((k) => JSON.stringify(wish[k]) !== JSON.stringify(usual[k]) || wrong[k]);
  const why = (field: string) => wrong[field] && t(wrong[field]);
  return (
    <details className="more" open={asked || undefined}>
      <summary>{t("Schedule and placement")}</summary>
      <div className="stack" style={{ paddingTop: 10 }}>
        <div className="pairs">
          <TextInput
            inputWrapperOrder={["label", "input", "description", "error"]}
            label={t("Time limit")}
            description={t("The session stops after this time. Short sessions can start earlier.")}
            placeholder={t("such as 2h")}
            value={wish.lifetime}
            error={why("lifetime")}
            onChange={(e) => onChange({ lifetime: e.currentTarget.value })}
          />
          <NumberInput
            inputWrapperOrder={["label", "input", "description", "error"]}
            label={t("Priority")}
            description={t("0 to 100, higher first")}
            min={0}
            max={100}
            value={wish.priority}
            error={why("priority")}
            onChange={(priority) => onChange({ priority })}
          />
        </div>
        {wish.mode === "BATCH" ? (
          <TextInput
            type="datetime-local"
            label={t("Earliest start")}
            value={wish.startsAt}
            error={why("startsAt")}
            onChange={(e) => onChange({ startsAt: e.currentTarget.value })}
          />
        ) : null}
        <Several
          label={t("Start after")}
          description={t("These sessions must succeed. If one does not, the new session is cancelled.")}
          none={t("none")}
          options={others.map((s) => ({ value: s.id, label: s.name }))}
          value={wish.dependsOn}
          error={why("dependsOn")}
          onChange={(dependsOn) => onChange({ dependsOn })}
        />
        <Several
          label={t("Machines")}
          none={t("any")}
          options={agents.map((a) => ({ value: a.id, label: a.name }))}
          value={wish.agents}
          error={why("agents")}
          onChange={(chosen) => onChange({ agents: chosen })}
        />
        {wish.agents.length > 0 ? (
          <Switch
            label={t("Only these machines")}
            description={t("Otherwise, these machines are only preferred.")}
            checked={wish.strict}
            onChange={(e) => onChange({ strict: e.currentTarget.checked })}
          />
        ) : null}
        {wrong.strictAgents ? (
          <p className="bad" role="alert">
            {wrong.strictAgents}
          </p>
        ) : null}
        <GroupOfSessions
          project={wish.project}
          value={wish.sessionGroup}
          error={why("sessionGroup")}
          onChange={(sessionGroup) => onChange({ sessionGroup })}
        />
        <Switch
          label={t("Preemptible")}
          description={t("Sessions with a higher priority can stop it, if its resource group allows that.")}
          checked={wish.preemptible}
          onChange={(e) => onChange({ preemptible: e.currentTarget.checked })}
        />
      </div>
    </details>
  );
}
