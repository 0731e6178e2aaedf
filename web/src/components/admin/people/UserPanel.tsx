import { Button, Tabs } from "@mantine/core";
import { useState } from "react";
import { type ResultOf, graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { toast } from "../../../hooks/useToasts";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { FailureNote } from "../../Note";
import { Status } from "../../Status";
import { slotsLine, when } from "../../format";
import { SidePanel } from "../Panel";
import { seesAll } from "../nav";
import { Attachments } from "./Attachments";
import { Limits } from "./Limits";
import { UserAccess } from "./UserAccess";
import { UserActivity } from "./UserActivity";
import { UserProfile } from "./UserProfile";
import { UserProjects } from "./UserProjects";
import { adminOf, may, reaches, roleNames } from "./rights";
import { type Status as UserStatus, UpdateUser } from "./userdraft";

const UserQuery = graphql(`
  query UserOne($id: ID!) {
    node(id: $id) {
      ... on User {
        id email username fullName role status createdAt lastLoginAt occupied permissions
        domain { id name }
        account { allowedAddresses containerUid containerGid containerGids passwordChangeRequired passwordChangedAt totpEnabledAt }
        policies { id policy { id name } resourceGroup { id name } withinProject { id name } }
        memberships { id admin project { id name permissions } }
      }
    }
  }
`);

export type OneUser = Extract<NonNullable<ResultOf<typeof UserQuery>["node"]>, { email: string }>;

interface Props {
  id: string;
  onClose: () => void;
  /** The list may show him elsewhere now, or no more. */
  onMoved: () => void;
}

/** One user: who he is, where he works, what binds him, how he logs in, what he did. */
export function UserPanel({ id, onClose, onMoved }: Props) {
  const viewer = useViewer();
  const { data, failure, refetch, fetching } = useLiveQuery({ query: UserQuery, variables: { id } });
  const user = data?.node && "email" in data.node ? data.node : null;
  if (!user) {
    return (
      <SidePanel title={t("User")} onClose={onClose}>
        <FailureNote failure={failure} />
        <p className="dim">{fetching ? t("Loading…") : t("There is no such user, or he is out of your sight.")}</p>
      </SidePanel>
    );
  }
  const admin = adminOf(viewer, user.domain.id);
  const editable = may(user, "update") && reaches(viewer, user.role);
  return (
    <SidePanel title={user.email} onClose={onClose}>
      <dl className="facts">
        <dt>{t("Status")}</dt>
        <dd className="row">
          <Status status={user.status} />
          {editable && user.id !== viewer.user.id && user.status !== "deleted" ? <Standing user={user} onMoved={onMoved} /> : null}
        </dd>
        <dt>{t("Domain")}</dt>
        <dd>{user.domain.name}</dd>
        <dt>{t("Role")}</dt>
        <dd>{t(roleNames[user.role])}</dd>
        <dt>{t("Last login")}</dt>
        <dd>{user.lastLoginAt ? when(user.lastLoginAt) : t("never")}</dd>
        <dt>{t("Created")}</dt>
        <dd>{when(user.createdAt)}</dd>
        <dt>{t("Holds now")}</dt>
        <dd>{slotsLine(user.occupied) || t("nothing")}</dd>
      </dl>
      <Tabs defaultValue="profile" keepMounted={false}>
        <Tabs.List aria-label={t("About {{name}}", { name: user.email })}>
          <Tabs.Tab value="profile">{t("Profile")}</Tabs.Tab>
          <Tabs.Tab value="projects">{t("Projects")}</Tabs.Tab>
          <Tabs.Tab value="limits">{t("Limits")}</Tabs.Tab>
          {admin || seesAll(viewer) ? <Tabs.Tab value="access">{t("Logins and keys")}</Tabs.Tab> : null}
          {admin || seesAll(viewer) ? <Tabs.Tab value="activity">{t("Activity")}</Tabs.Tab> : null}
        </Tabs.List>
        <Tabs.Panel value="profile" pt="md">
          <UserProfile key={user.id} user={user} editable={editable} />
        </Tabs.Panel>
        <Tabs.Panel value="projects" pt="md">
          <UserProjects user={user} onChanged={refetch} />
        </Tabs.Panel>
        <Tabs.Panel value="limits" pt="md">
          <div className="stack side">
            <Attachments holder={{ user: user.id }} attached={user.policies} mayChange={admin && reaches(viewer, user.role)} onChanged={refetch} />
            <Limits at={{ user: user.id }} />
          </div>
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

/** What may be done about a user's status, with what it does to him. */
function Standing({ user, onMoved }: { user: OneUser; onMoved: () => void }) {
  const { run, busy, failure, clear } = useAction(UpdateUser);
  const [asked, setAsked] = useState(false);
  async function set(status: UserStatus, said: string) {
    if (!(await run({ input: { id: user.id, status } }))) return;
    setAsked(false);
    toast({ text: said });
    onMoved();
  }
  if (user.status === "active") {
    return (
      <>
        <Button variant="default" size="compact-sm" onClick={() => setAsked(true)}>
          {t("Deactivate")}
        </Button>
        <Confirm opened={asked} title={t("Deactivate {{name}}?", { name: user.email })} action={t("Deactivate")} busy={busy} failure={failure}
          onConfirm={() => void set("inactive", t("{{name}} is inactive.", { name: user.email }))}
          onClose={() => { setAsked(false); clear(); }}>
          <p>{t("He is logged out everywhere, and none of his tokens and keys is taken any more. His sessions run on, his folders stay. You can activate him again.")}</p>
        </Confirm>
      </>
    );
  }
  return (
    <>
      <Button size="compact-sm" loading={busy} onClick={() => void set("active", t("{{name}} is active.", { name: user.email }))}>
        {user.status === "before_verification" ? t("Approve") : t("Activate")}
      </Button>
      <FailureNote failure={failure} />
    </>
  );
}
