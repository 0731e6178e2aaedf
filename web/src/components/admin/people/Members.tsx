import { Button, Checkbox } from "@mantine/core";
import { useState } from "react";
import type { ResultOf } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { FailureNote } from "../../Note";
import { Status } from "../../Status";
import { FilterBox } from "../Filter";
import { Part } from "../Panel";
import { UserPick } from "../Pickers";
import { type Node, usePages } from "../usePages";
import { AddMembership, membersWhere, RemoveMembership } from "./members";
import { MembersQuery, type OneProject } from "./project";
import { adminOf, can } from "./rights";

type Member = Node<
  Extract<NonNullable<ResultOf<typeof MembersQuery>["node"]>, { memberships: unknown }>["memberships"]
>;

/** Shows the members of a project, and which of them are its administrators. */
export function Members({ project }: { project: OneProject }) {
  const viewer = useViewer();
  const set = useAction(AddMembership, true);
  const remove = useAction(RemoveMembership);
  const [q, setQ] = useState("");
  const [removing, setRemoving] = useState<Member | null>(null);
  const pages = usePages({
    query: MembersQuery,
    variables: { id: project.id, where: membersWhere(q) },
    pick: (data) => (data.node && "memberships" in data.node ? data.node.memberships : null),
  });
  const chooses = can(project, "MANAGE_MEMBERS");
  const count = project.memberships.totalCount;
  async function change(user: string, admin?: boolean) {
    if (await set.run({ input: { project: project.id, user, admin } })) pages.reload();
  }
  return (
    <Part
      title={t("Members ({{n}})", { n: count })}
      aside={count > 8 ? <FilterBox label={t("Filter members")} value={q} onChange={setQ} /> : null}
    >
      <FailureNote failure={pages.failure} />
      {chooses ? (
        <UserPick
          key={count}
          label={t("Add a member")}
          placeholder={t("Search by e-mail or name")}
          value={null}
          domain={project.domain.id}
          byId
          description={
            adminOf(viewer, project.domain.id)
              ? undefined
              : t("You find users who share a project with you. To add another user of the domain, enter the user ID.")
          }
          exclude={new Set(pages.rows.map((m) => m.user.id))}
          onChange={(user) => user && void change(user)}
        />
      ) : null}
      {count === 0 ? <p className="dim">{t("No members yet.")}</p> : null}
      {pages.rows.length > 0 ? (
        <ul className="rows" aria-label={t("Members")}>
          {pages.rows.map((m) => (
            <li key={m.id}>
              <span style={{ minWidth: 0, flex: 1 }}>
                <span className="clip">{m.user.email}</span> <span className="dim">{m.user.fullName}</span>{" "}
                {m.user.status === "ACTIVE" ? null : <Status status={m.user.status} />}
              </span>
              {chooses ? (
                <span className="push row keep">
                  <Checkbox
                    label={t("project administrator")}
                    aria-label={t("{{email}} is an administrator of {{name}}", {
                      email: m.user.email,
                      name: project.name,
                    })}
                    checked={m.admin}
                    onChange={(e) => void change(m.user.id, e.currentTarget.checked)}
                  />
                  <Button
                    variant="subtle"
                    color="red"
                    size="compact-xs"
                    aria-label={t("Remove {{email}} from {{name}}", { email: m.user.email, name: project.name })}
                    onClick={() => {
                      remove.clear();
                      setRemoving(m);
                    }}
                  >
                    {t("Remove")}
                  </Button>
                </span>
              ) : m.admin ? (
                <span className="push dim nowrap">{t("project administrator")}</span>
              ) : null}
            </li>
          ))}
        </ul>
      ) : null}
      {pages.more ? (
        <Button variant="default" loading={pages.loading} onClick={pages.more}>
          {t("Show more")}
        </Button>
      ) : null}
      <Confirm
        opened={removing !== null}
        title={t("Remove {{email}} from {{name}}?", { email: removing?.user.email ?? "", name: project.name })}
        action={t("Remove")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => setRemoving(null)}
        onConfirm={async () => {
          if (!removing || !(await remove.run({ input: { project: project.id, user: removing.user.id } }))) return;
          setRemoving(null);
          pages.reload();
        }}
      >
        <p>
          {removing?.user.id === viewer.user.id
            ? t("You lose access to the project, unless you administer its domain.")
            : t("They lose access to the project and its folders. Their running sessions are not affected.")}
        </p>
      </Confirm>
    </Part>
  );
}
