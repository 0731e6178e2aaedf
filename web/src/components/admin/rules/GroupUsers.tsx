import { SegmentedControl } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { FailureNote } from "../../Note";
import { FilterBox } from "../Filter";
import { Part } from "../Panel";
import { nodesOf } from "../usePages";
import { reasons } from "./group";

const WhoMayQuery = graphql(`
  query WhoMay($group: ID!, $where: ResourceGroupAccessWhereInput!) {
    resourceGroupAccess(resourceGroup: $group, first: 100, where: $where) {
      totalCount
      edges { node { user { id email fullName } project { id name domain { id name } } via } }
    }
    users: resourceGroupAccess(resourceGroup: $group, where: { holder: USER }, first: 1) { totalCount }
    projects: resourceGroupAccess(resourceGroup: $group, where: { holder: PROJECT }, first: 1) { totalCount }
  }
`);

/** Shows everyone who can use a group, by project and by user, and why. A new stamp refetches the list. */
export function GroupUsers({ group, stamp }: { group: string; stamp: string }) {
  const [by, setBy] = useState<"projects" | "users">("projects");
  const [q, setQ] = useState("");
  const { data, failure, refetch } = useLiveQuery({
    query: WhoMayQuery,
    variables: { group, where: { holder: by === "users" ? "USER" : "PROJECT", nameContainsFold: q || null } },
  });
  const read = useRef(stamp);
  useEffect(() => {
    if (read.current === stamp) return;
    read.current = stamp;
    refetch();
  });
  const found = nodesOf(data?.resourceGroupAccess).flatMap((a) =>
    a.user
      ? [{ id: a.user.id, name: a.user.email, more: a.user.fullName, via: a.via }]
      : a.project
        ? [
            {
              id: a.project.id,
              name: a.project.name,
              more: t("in {{domain}}", { domain: a.project.domain.name }),
              via: a.via,
            },
          ]
        : [],
  );
  const total = data?.resourceGroupAccess.totalCount ?? 0;
  const count = (what: "users" | "projects") => data?.[what].totalCount ?? 0;
  return (
    <Part title={t("Who can use it")}>
      <FailureNote failure={failure} />
      <div className="row">
        <SegmentedControl
          aria-label={t("Who can use it")}
          value={by}
          onChange={(v) => setBy(v as typeof by)}
          data={[
            { value: "projects", label: t("Projects ({{n}})", { n: count("projects") }) },
            { value: "users", label: t("Users ({{n}})", { n: count("users") }) },
          ]}
        />
        {count(by) > 10 ? <FilterBox key={by} label={t("Filter by name")} value="" onChange={setQ} /> : null}
      </div>
      {data && found.length === 0 ? (
        <p className="dim">{count(by) === 0 ? t("None that you can see.") : t("No matches")}</p>
      ) : null}
      {found.length > 0 ? (
        <ul
          className="rows tall"
          tabIndex={found.length > 10 ? 0 : undefined}
          aria-label={by === "users" ? t("Users who can use it") : t("Projects that can use it")}
        >
          {found.map((n) => (
            <li key={n.id}>
              <span>
                <b>{n.name}</b> <span className="dim">{n.more}</span>
              </span>
              <span className="push dim">{n.via.map((v) => t(reasons[v] ?? v)).join(", ")}</span>
            </li>
          ))}
        </ul>
      ) : null}
      {total > found.length ? (
        <p className="dim">
          {t("Showing {{n}} of {{total}}. Filter by name to find others.", { n: found.length, total })}
        </p>
      ) : null}
    </Part>
  );
}
