import { Button, Checkbox } from "@mantine/core";
import { useAction } from "../../../hooks/useAction";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { Part } from "../Panel";
import { ProjectPick } from "../Pickers";
import { AddMembership, RemoveMembership } from "./members";
import { adminOf, can } from "./rights";
import type { OneUser } from "./user";

/** Shows the projects of a user. Viewers who can manage the members of a project can change them. */
export function UserProjects({ user, onChanged }: { user: OneUser; onChanged: () => void }) {
  const viewer = useViewer();
  const set = useAction(AddMembership, true);
  const remove = useAction(RemoveMembership, true);
  const adds = adminOf(viewer, user.domain.id) || viewer.user.memberships.some((m) => m.admin);
  const changed = async (done: Promise<unknown>) => {
    if (await done) onChanged();
  };
  return (
    <Part title={t("Projects")}>
      {user.memberships.length === 0 ? (
        <p className="dim">{t("The user is in no project and cannot start sessions.")}</p>
      ) : (
        <ul className="rows">
          {user.memberships.map((m) => (
            <li key={m.id}>
              <b className="clip">{m.project.name}</b>
              {can(m.project, "MANAGE_MEMBERS") ? (
                <span className="push row">
                  <Checkbox
                    label={t("project administrator")}
                    aria-label={t("Administrator of {{name}}", { name: m.project.name })}
                    checked={m.admin}
                    onChange={(e) =>
                      void changed(
                        set.run({ input: { project: m.project.id, user: user.id, admin: e.currentTarget.checked } }),
                      )
                    }
                  />
                  <Button
                    variant="subtle"
                    color="red"
                    size="compact-xs"
                    aria-label={t("Remove from {{name}}", { name: m.project.name })}
                    onClick={() => void changed(remove.run({ input: { project: m.project.id, user: user.id } }))}
                  >
                    {t("Remove")}
                  </Button>
                </span>
              ) : m.admin ? (
                <span className="push dim">{t("project administrator")}</span>
              ) : null}
            </li>
          ))}
        </ul>
      )}
      {adds ? (
        <ProjectPick
          label={t("Add to a project")}
          domain={user.domain.id}
          value={null}
          exclude={new Set(user.memberships.map((m) => m.project.id))}
          onChange={(project) => project && void changed(set.run({ input: { project, user: user.id } }))}
        />
      ) : null}
    </Part>
  );
}
