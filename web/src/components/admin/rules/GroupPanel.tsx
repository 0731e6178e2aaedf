import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { Part, SidePanel } from "../Panel";
import { GroupGrants } from "./GroupGrants";
import { GroupShares } from "./Shares";
import { WhoMay } from "./WhoMay";
import { printTime } from "./amounts";
import { type Group, holdText, lostPolicies, openTo, orders, preemptionScopes, preemptions, sessionTypes, splits, strategies, topologies } from "./group";

const DeleteGroup = graphql(`mutation DeleteGroup($input: DeleteResourceGroupInput!) { deleteResourceGroup(input: $input) { id } }`);

interface Props {
  group: Group;
  onEdit: () => void;
  onClose: () => void;
  onDone: () => void;
}

export function GroupPanel({ group, onEdit, onClose, onDone }: Props) {
  const [deleting, setDeleting] = useState(false);
  const { run, busy, failure, clear } = useAction(DeleteGroup);
  const may = (op: (typeof group.permissions)[number]) => group.permissions.includes(op);
  async function remove() {
    if (!(await run({ input: { id: group.id } }))) return;
    onDone();
    onClose();
  }
  return (
    <SidePanel title={group.name} onClose={onClose}>
      <Part title={t("Settings")} aside={
        <>
          {may("update") ? <Button variant="default" onClick={onEdit}>{t("Change")}</Button> : null}
          {may("delete") ? <Button variant="subtle" color="red" onClick={() => { clear(); setDeleting(true); }}>{t("Delete")}</Button> : null}
        </>
      }>
        <dl className="facts">
          {group.description ? <><dt>{t("Description")}</dt><dd>{group.description}</dd></> : null}
          <dt>{t("Open to")}</dt>
          <dd>{t(...openTo(group))}</dd>
          <dt>{t("Types of sessions")}</dt>
          <dd>{sessionTypes.filter((s) => group.sessionTypes.includes(s.value)).map((s) => t(s.label)).join(", ")}</dd>
          {group.allowedNetworks.length > 0 ? <><dt>{t("Private networks that containers reach")}</dt><dd>{group.allowedNetworks.join(", ")}</dd></> : null}
          <dt>{t("Placement")}</dt>
          <dd>{strategies.filter((s) => s.value === group.strategy).map((s) => t(s.label))}</dd>
          <dt>{t("More than one device has")}</dt>
          <dd>{splits.filter((s) => s.value === group.split).map((s) => t(s.label))}</dd>
          <dt>{t("Several devices")}</dt>
          <dd>{topologies.filter((x) => x.value === group.topology).map((x) => t(x.label))}</dd>
          <dt>{t("Order of the queue")}</dt>
          <dd>{orders.filter((o) => o.value === group.order).map((o) => t(o.label))}</dd>
          {group.order === "fair_share" ? (
            <>
              <dt>{t("Half-life of usage")}</dt>
              <dd>{t("{{time}}, forgotten after {{lookback}}", { time: printTime(group.halfLife), lookback: printTime(group.lookback) })}</dd>
            </>
          ) : null}
          <dt>{t("Hold agents for the first")}</dt>
          <dd>{t(...holdText(group.holdAfter))}</dd>
          <dt>{t("End sessions for more important ones")}</dt>
          <dd>
            {preemptions.filter((p) => p.value === group.preemption).map((p) => t(p.label))}
            {group.preemption === "off" ? null : `, ${preemptionScopes.filter((s) => s.value === group.preemptionScope).map((s) => t(s.label)).join("")}, ${t("after {{time}}", { time: printTime(group.preemptionAfter) })}`}
          </dd>
          <dt>{t("Sessions of a lost agent")}</dt>
          <dd>{lostPolicies.filter((p) => p.value === group.lostPolicy).map((p) => t(p.label))}{group.lostPolicy === "wait" ? null : `, ${t("after {{time}}", { time: printTime(group.lostAfter) })}`}</dd>
          <dt>{t("Attempts to start")}</dt>
          <dd>{group.maxAttempts}</dd>
          <dt>{t("Waits for at most")}</dt>
          <dd>{group.pendingTimeout === 0 ? t("for ever") : printTime(group.pendingTimeout)}</dd>
          <dt>{t("Agents")}</dt>
          <dd>{group.agents.totalCount > 0 ? <Link to="/admin/agents">{group.agents.totalCount}</Link> : t("none: nothing can start in it")}</dd>
        </dl>
      </Part>
      <GroupShares group={group} />
      <GroupGrants group={group} onDone={onDone} />
      <WhoMay group={group.id} stamp={JSON.stringify([group.active, group.public, group.grants.map((g) => g.id)])} />
      <Confirm opened={deleting} title={t("Delete {{name}}?", { name: group.name })} action={t("Delete")} busy={busy} failure={failure} onClose={() => setDeleting(false)} onConfirm={() => void remove()}>
        {t("A group with agents or sessions is not deleted; it can be made inactive instead. Its presets and grants go with it.")}
      </Confirm>
    </SidePanel>
  );
}
