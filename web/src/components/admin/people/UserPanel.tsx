import { Tabs } from "@mantine/core";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { slotsLine, when } from "../../format";
import { FailureNote } from "../../Note";
import { Status } from "../../Status";
import { canReadAll } from "../nav";
import { SidePanel } from "../Panel";
import { Limits } from "./Limits";
import { adminOf, can, canChangeUser, roleNames } from "./rights";
import { UserAccess } from "./UserAccess";
import { UserActivity } from "./UserActivity";
import { UserProfile } from "./UserProfile";
import { UserProjects } from "./UserProjects";
import { UserStatus } from "./UserStatus";
import { UserQuery } from "./user";
import { VolumeAccess } from "./VolumeAccess";
import { canListVolumeUsers } from "./volumes";

interface Props {
  id: string;
  onClose: () => void;
  /** Called when the user may have to move or disappear in the list. */
  onMoved: () => void;
}

/** Shows one user: their name, projects, limits, credentials and activity. */
export function UserPanel({ id, onClose, onMoved }: Props) {
  const viewer = useViewer();
  const { data, failure, refetch, fetching } = useLiveQuery({ query: UserQuery, variables: { id } });
  const user = data?.node && "email" in data.node ? data.node : null;
  if (!user) {
    return (
      <SidePanel title={t("User")} onClose={onClose}>
        <FailureNote failure={failure} />
        <p className="dim">
          {fetching ? t("Loading…") : t("This user does not exist, or you do not have access to them.")}
        </p>
      </SidePanel>
    );
  }
  const admin = adminOf(viewer, user.domain.id);
  const editable = can(user, "UPDATE") && canChangeUser(viewer, user.role);
  return (
    <SidePanel title={user.email} onClose={onClose}>
      <dl className="facts">
        <dt>{t("Status")}</dt>
        <dd className="row">
          <Status status={user.status} />
          {editable && user.id !== viewer.user.id ? (
            <UserStatus
              user={user}
              onMoved={onMoved}
              onGone={() => {
                onClose();
                onMoved();
              }}
            />
          ) : null}
        </dd>
        <dt>{t("Domain")}</dt>
        <dd>{user.domain.name}</dd>
        <dt>{t("Role")}</dt>
        <dd>{t(roleNames[user.role])}</dd>
        <dt>{t("Last login")}</dt>
        <dd>{user.lastLoginAt ? when(user.lastLoginAt) : t("never")}</dd>
        <dt>{t("Created")}</dt>
        <dd>{when(user.createdAt)}</dd>
        <dt>{t("Resources in use")}</dt>
        <dd>{slotsLine(user.occupied) || t("nothing")}</dd>
      </dl>
      <Tabs defaultValue="profile" keepMounted={false}>
        <Tabs.List aria-label={t("About {{name}}", { name: user.email })}>
          <Tabs.Tab value="profile">{t("Profile")}</Tabs.Tab>
          <Tabs.Tab value="projects">{t("Projects")}</Tabs.Tab>
          <Tabs.Tab value="limits">{t("Limits")}</Tabs.Tab>
          {canListVolumeUsers(viewer) ? <Tabs.Tab value="volumes">{t("Volumes")}</Tabs.Tab> : null}
          {admin || canReadAll(viewer) ? <Tabs.Tab value="access">{t("Logins and keys")}</Tabs.Tab> : null}
          {admin || canReadAll(viewer) ? <Tabs.Tab value="activity">{t("Activity")}</Tabs.Tab> : null}
        </Tabs.List>
        <Tabs.Panel value="profile" pt="md">
          <UserProfile key={user.id} user={user} editable={editable} />
        </Tabs.Panel>
        <Tabs.Panel value="projects" pt="md">
          <UserProjects user={user} onChanged={refetch} />
        </Tabs.Panel>
        <Tabs.Panel value="limits" pt="md">
          <Limits
            holder={{ kind: "user", id: user.id, name: user.email }}
            attached={user.policies}
            mayAttach={admin && canChangeUser(viewer, user.role)}
            onChanged={refetch}
          />
        </Tabs.Panel>
        <Tabs.Panel value="volumes" pt="md">
          <VolumeAccess holder={{ kind: "user", id: user.id, name: user.email }} />
        </Tabs.Panel>
        <Tabs.Panel value="access" pt="md">
          <UserAccess user={user} editable={editable && admin} onChanged={refetch} />
        </Tabs.Panel>
        <Tabs.Panel value="activity" pt="md">
          <UserActivity user={user} />
        </Tabs.Panel>
      </Tabs>
    </SidePanel>
  );
}
