import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { Empty, FailureNote } from "../../Note";
import { canReadAll } from "../nav";
import { GroupPick, ProjectPick, UserPick } from "../Pickers";
import { nodesOf } from "../usePages";
import { AttachDialog } from "./AttachDialog";
import { Attachments } from "./Attachments";
import { type Attachment, AttachmentFields } from "./attachment";
import type { HolderKind } from "./holder";
import { LimitsTable } from "./LimitsTable";
import { attachableHolders } from "./rights";

const LimitsQuery = graphql(
  `
  query WhatBinds($user: ID, $project: ID, $resourceGroup: ID, $holders: [ID!]!) {
    effectiveLimits(user: $user, project: $project, resourceGroup: $resourceGroup) {
      what limit used assignable scope holder policy resourceGroup withinProject
    }
    nodes(ids: $holders) {
      id
      ... on User { email domain { id name policies { ...AttachmentFields } } policies { ...AttachmentFields } }
      ... on Project { name domain { id name policies { ...AttachmentFields } } policies { ...AttachmentFields } }
    }
  }
`,
  [AttachmentFields],
);
const KeysQuery = graphql(
  `
  query WhatBindsKeypairs($user: ID!) {
    keypairs(user: $user, first: 50) { edges { node { id policies { ...AttachmentFields } } } }
  }
`,
  [AttachmentFields],
);

export interface Place {
  user?: string;
  project?: string;
  group?: string;
}

/** Shows the effective limits of a user in a project on a resource group, and the policies that set them. */
export function EffectiveLimits({ place, onChange }: { place: Place; onChange: (more: Place) => void }) {
  const viewer = useViewer();
  const [adding, setAdding] = useState<{ kind: HolderKind; id: string; name: string } | null>(null);
  const holders = [place.user, place.project].filter((id): id is string => Boolean(id));
  const { data, failure, refetch } = useLiveQuery({
    query: LimitsQuery,
    pause: holders.length === 0,
    variables: {
      user: place.user ?? null,
      project: place.project ?? null,
      resourceGroup: place.group ?? null,
      holders,
    },
  });
  // Only viewers who can read everything can read the keypairs of other users.
  const keys = useLiveQuery({
    query: KeysQuery,
    variables: { user: place.user ?? "" },
    pause: !place.user || !canReadAll(viewer),
  });
  const nodes = holders.length === 0 ? [] : (data?.nodes ?? []).flatMap((n) => (n && "policies" in n ? [n] : []));
  const names = new Map(nodes.map((n) => [n.id, "email" in n ? n.email : n.name]));
  const chosen = (id: string | undefined) => (id ? { value: id, label: names.get(id) ?? "" } : null);
  const attached = new Map<string, Attachment>();
  for (const n of nodes) for (const a of [...n.policies, ...n.domain.policies]) attached.set(a.id, a);
  const domain = nodes[0]?.domain;
  for (const k of nodesOf(keys.data?.keypairs)) for (const a of k.policies) attached.set(a.id, a);
  const all: { kind: HolderKind; id: string; name: string }[] = [
    ...nodes.map((n) =>
      "email" in n
        ? { kind: "user" as const, id: n.id, name: n.email }
        : { kind: "project" as const, id: n.id, name: n.name },
    ),
    ...(domain ? [{ kind: "domain" as const, id: domain.id, name: domain.name }] : []),
  ];
  const bind = all.filter((h) => attachableHolders(viewer).includes(h.kind));
  function changed() {
    refetch();
    if (place.user && canReadAll(viewer)) keys.refetch();
  }
  return (
    <>
      <section className="panel pad whose" aria-label={t("Filter")}>
        <UserPick
          key={`u ${names.get(place.user ?? "")}`}
          label={t("User")}
          value={place.user ?? null}
          chosen={chosen(place.user)}
          onChange={(id) => onChange({ user: id ?? undefined })}
        />
        <ProjectPick
          key={`p ${names.get(place.project ?? "")}`}
          label={t("Project")}
          placeholder={t("Any")}
          value={place.project ?? null}
          chosen={chosen(place.project)}
          onChange={(id) => onChange({ project: id ?? undefined })}
        />
        <GroupPick
          label={t("Resource group")}
          placeholder={t("Any")}
          value={place.group ?? null}
          onChange={(id) => onChange({ group: id ?? undefined })}
        />
      </section>
      <FailureNote failure={failure} />
      {holders.length === 0 ? (
        <div className="panel">
          <Empty title={t("Nothing selected")}>{t("Choose a user, a project, or both.")}</Empty>
        </div>
      ) : null}
      {data && nodes.length > 0 ? (
        <>
          <section className="panel" aria-label={t("Attached policies")}>
            <div className="panel-head">
              <h2>{t("Attached policies")}</h2>
              {bind.length > 0 ? (
                <div className="push row">
                  {bind.map((h) => (
                    <Button key={h.id} variant="default" size="compact-xs" onClick={() => setAdding(h)}>
                      {t("Policy for {{name}}", { name: h.name })}
                    </Button>
                  ))}
                </div>
              ) : null}
            </div>
            {attached.size > 0 ? (
              <Attachments
                label={t("Attached policies")}
                list={[...attached.values()]}
                first="policy"
                onDone={changed}
              />
            ) : (
              <p className="pad-line dim">{t("No policy is attached to the selection or to its domain.")}</p>
            )}
          </section>
          <section className="panel scroll-x" aria-label={t("Effective limits")}>
            <div className="panel-head">
              <h2>{t("Effective limits")}</h2>
              <span className="dim">{t("of several limits, the one that leaves the least")}</span>
            </div>
            {data.effectiveLimits.length === 0 ? (
              <p className="pad-line dim">{t("No limits apply. Only the size of the cluster limits usage.")}</p>
            ) : (
              <LimitsTable list={data.effectiveLimits} />
            )}
          </section>
        </>
      ) : null}
      {adding ? <AttachDialog policy={null} holder={adding} onClose={() => setAdding(null)} onDone={changed} /> : null}
    </>
  );
}
