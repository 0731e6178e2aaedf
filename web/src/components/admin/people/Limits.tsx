import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { FailureNote } from "../../Note";
import { Part } from "../Panel";
import { GroupPick } from "../Pickers";
import { AttachDialog } from "../rules/AttachDialog";
import { Attachments } from "../rules/Attachments";
import type { Attachment } from "../rules/attachment";
import { LimitsTable } from "../rules/LimitsTable";

const LimitsQuery = graphql(`
  query LimitsOf($domain: ID, $project: ID, $user: ID, $resourceGroup: ID) {
    effectiveLimits(domain: $domain, project: $project, user: $user, resourceGroup: $resourceGroup) {
      what limit used assignable scope holder policy resourceGroup withinProject
    }
  }
`);

interface Props {
  holder: { kind: "domain" | "project" | "user"; id: string; name: string };
  attached: Attachment[];
  mayAttach: boolean;
  onChanged: () => void;
}

/** Shows the policies that are attached to a user, project or domain, and the effective limits. */
export function Limits({ holder, attached, mayAttach, onChanged }: Props) {
  const [adding, setAdding] = useState(false);
  const [resourceGroup, setGroup] = useState<string | null>(null);
  const { data, failure, refetch } = useLiveQuery({
    query: LimitsQuery,
    variables: { [holder.kind]: holder.id, resourceGroup },
  });
  const changed = () => {
    onChanged();
    refetch();
  };
  return (
    <div className="stack side">
      <Part
        title={t("Policies")}
        aside={
          mayAttach ? (
            <Button variant="default" size="compact-sm" onClick={() => setAdding(true)}>
              {t("Attach a policy")}
            </Button>
          ) : null
        }
      >
        {attached.length === 0 ? (
          <p className="dim">{t("No policy is attached.")}</p>
        ) : (
          <Attachments label={t("Policies")} list={attached} first="policy" onDone={changed} />
        )}
      </Part>
      <Part
        title={t("Effective limits")}
        aside={
          <GroupPick
            bare
            label={t("Resource group")}
            placeholder={t("Resource group")}
            w={190}
            value={resourceGroup}
            onChange={setGroup}
          />
        }
      >
        <FailureNote failure={failure} />
        {data && data.effectiveLimits.length === 0 ? (
          <p className="dim">{t("No limits apply. Only the size of the cluster limits usage.")}</p>
        ) : null}
        {data && data.effectiveLimits.length > 0 ? (
          <div className="panel scroll-x">
            <LimitsTable list={data.effectiveLimits} />
          </div>
        ) : null}
      </Part>
      {adding ? <AttachDialog policy={null} holder={holder} onClose={() => setAdding(false)} onDone={changed} /> : null}
    </div>
  );
}
