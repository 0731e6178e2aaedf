import { Button, Checkbox, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../../hooks/useAction";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { Status } from "../../Status";
import { Part } from "../Panel";
import { UserPick } from "../Pickers";
import { RemoveMembership, AddMembership } from "./members";
import type { OneProject } from "./project";
import { adminOf, may } from "./rights";

const first = 100;
type Member = OneProject["memberships"][number];

/** Who is in a project, and who of them administers it. */
export function Members({ project }: { project: OneProject }) {
  const viewer = useViewer();
  const set = useAction(AddMembership, true);
  const remove = useAction(RemoveMembership);
  const [q, setQ] = useState("");
  const [all, setAll] = useState(false);
  const [going, setGoing] = useState<Member | null>(null);
  const chooses = may(project, "MANAGE_MEMBERS");
  const sorted = [...project.memberships].sort(
    (a, b) => Number(b.admin) - Number(a.admin) || a.user.email.localeCompare(b.user.email),
  );
  const found = sorted.filter((m) =>
    `${m.user.email} ${m.user.fullName}`.toLowerCase().includes(q.trim().toLowerCase()),
  );
  const shown = all ? found : found.slice(0, first);
  return (
    <Part
      title={t("Members ({{n}})", { n: sorted.length })}
      aside={
        sorted.length > 8 ? (
          <TextInput
            type="search"
            aria-label={t("Filter members")}
            placeholder={t("Filter members")}
            w={170}
            value={q}
            onChange={(e) => setQ(e.currentTarget.value)}
          />
        ) : null
      }
    >
      {chooses ? (
        <UserPick
          key={sorted.length}
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
          exclude={new Set(sorted.map((m) => m.user.id))}
          onChange={(user) => user && void set.run({ input: { project: project.id, user } })}
        />
      ) : null}
      {sorted.length === 0 ? <p className="dim">{t("No members yet.")}</p> : null}
      {shown.length > 0 ? (
        <ul className="rows" aria-label={t("Members")}>
          {shown.map((m) => (
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
                    onChange={(e) =>
                      void set.run({ input: { project: project.id, user: m.user.id, admin: e.currentTarget.checked } })
                    }
                  />
                  <Button
                    variant="subtle"
                    color="red"
                    size="compact-xs"
                    aria-label={t("Remove {{email}} from {{name}}", { email: m.user.email, name: project.name })}
                    onClick={() => {
                      remove.clear();
                      setGoing(m);
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
      {found.length > shown.length ? (
        <Button variant="default" onClick={() => setAll(true)}>
          {t("Show all {{n}}", { n: found.length })}
        </Button>
      ) : null}
      <Confirm
        opened={going !== null}
        title={t("Remove {{email}} from {{name}}?", { email: going?.user.email ?? "", name: project.name })}
        action={t("Remove")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => setGoing(null)}
        onConfirm={async () => {
          if (going && (await remove.run({ input: { project: project.id, user: going.user.id } }))) setGoing(null);
        }}
      >
        <p>
          {going?.user.id === viewer.user.id
            ? t("You lose access to the project, unless you administer its domain.")
            : t("They lose access to the project and its folders. Their running sessions are not affected.")}
        </p>
      </Confirm>
    </Part>
  );
}
