import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { typeWords, word } from "../../../words";
import { Confirm } from "../../Confirm";
import { Part, SidePanel } from "../Panel";
import { printTime } from "./amounts";
import { GroupGrants } from "./GroupGrants";
import { GroupUsers } from "./GroupUsers";
import { accessPhrase, type Group, reservationPhrase } from "./group";
import { GroupShares } from "./Shares";

const DeleteGroup = graphql(
  `mutation DeleteGroup($input: DeleteResourceGroupInput!) { deleteResourceGroup(input: $input) { id } }`,
);

interface Props {
  group: Group;
  onEdit: () => void;
  onClose: () => void;
  onDone: () => void;
}

export function GroupPanel({ group, onEdit, onClose, onDone }: Props) {
  const [deleting, setDeleting] = useState(false);
  const { run, busy, failure, clear } = useAction(DeleteGroup);
  const can = (op: (typeof group.permissions)[number]) => group.permissions.includes(op);
  async function remove() {
    if (!(await run({ input: { id: group.id } }))) return;
    onDone();
    onClose();
  }
  return (
    <SidePanel title={group.name} onClose={onClose}>
      <Part
        title={t("Settings")}
        aside={
          <>
            {can("UPDATE") ? (
              <Button variant="default" onClick={onEdit}>
                {t("Edit")}
              </Button>
            ) : null}
            {can("DELETE") ? (
              <Button
                variant="subtle"
                color="red"
                onClick={() => {
                  clear();
                  setDeleting(true);
                }}
              >
                {t("Delete")}
              </Button>
            ) : null}
          </>
        }
      >
        <dl className="facts">
          {group.description ? (
            <>
              <dt>{t("Description")}</dt>
              <dd>{group.description}</dd>
            </>
          ) : null}
          <dt>{t("Open to")}</dt>
          <dd>{t(...accessPhrase(group))}</dd>
          <dt>{t("Session types")}</dt>
          <dd>{typeWords(group.sessionTypes).join(", ")}</dd>
          {group.allowedNetworks.length > 0 ? (
            <>
              <dt>{t("Reachable private networks")}</dt>
              <dd>{group.allowedNetworks.join(", ")}</dd>
            </>
          ) : null}
          <dt>{t("Placement strategy")}</dt>
          <dd>{word("PlacementStrategy", group.strategy)}</dd>
          <dt>{t("Device packing")}</dt>
          <dd>{word("DeviceSplit", group.split)}</dd>
          <dt>{t("Device locality")}</dt>
          <dd>{word("DeviceTopology", group.topology)}</dd>
          <dt>{t("Queue order")}</dt>
          <dd>{word("QueueOrder", group.order)}</dd>
          {group.order === "FAIR_SHARE" ? (
            <>
              <dt>{t("Half-life of usage")}</dt>
              <dd>
                {t("{{time}}, ignored after {{lookback}}", {
                  time: printTime(group.halfLife),
                  lookback: printTime(group.lookback),
                })}
              </dd>
            </>
          ) : null}
          <dt>{t("Reserve agents for the queue head")}</dt>
          <dd>{t(...reservationPhrase(group.holdAfter))}</dd>
          <dt>{t("Preemption")}</dt>
          <dd>
            {word("Preemption", group.preemption)}
            {group.preemption === "OFF"
              ? null
              : `, ${word("PreemptionScope", group.preemptionScope)}, ${t("after {{time}}", { time: printTime(group.preemptionAfter) })}`}
          </dd>
          <dt>{t("Sessions of a lost agent")}</dt>
          <dd>
            {word("LostPolicy", group.lostPolicy)}
            {group.lostPolicy === "WAIT" ? null : `, ${t("after {{time}}", { time: printTime(group.lostAfter) })}`}
          </dd>
          <dt>{t("Start attempts")}</dt>
          <dd>{group.maxAttempts}</dd>
          <dt>{t("Pending timeout")}</dt>
          <dd>{group.pendingTimeout === 0 ? t("no timeout") : printTime(group.pendingTimeout)}</dd>
          <dt>{t("Agents")}</dt>
          <dd>
            {group.agents.totalCount > 0 ? (
              <Link to="/admin/agents">{group.agents.totalCount}</Link>
            ) : (
              t("none: no session can start")
            )}
          </dd>
        </dl>
      </Part>
      <GroupShares group={group} />
      <GroupGrants group={group} onDone={onDone} />
      <GroupUsers
        group={group.id}
        stamp={JSON.stringify([group.active, group.public, group.grants.map((g) => g.id)])}
      />
      <Confirm
        opened={deleting}
        title={t("Delete {{name}}?", { name: group.name })}
        action={t("Delete")}
        busy={busy}
        failure={failure}
        onClose={() => setDeleting(false)}
        onConfirm={() => void remove()}
      >
        {t(
          "You cannot delete a group that has agents or sessions, but you can make it inactive. Its presets and grants are deleted with it.",
        )}
      </Confirm>
    </SidePanel>
  );
}
