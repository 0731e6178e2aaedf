import { Button, Modal, Textarea } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useState } from "react";
import { useSubscription } from "urql";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useFocusBack } from "../../hooks/useFocusBack";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import { PermissionSelect } from "./PermissionSelect";
import { addresses, type FolderPermission, liveShares, maxInvitations, type Share, ShareFields } from "./share";
import { SharesChanged } from "./useInvitations";

const SharesQuery = graphql(
  `
  query FolderShares($id: ID!) { node(id: $id) { ... on Vfolder { id shares { ...ShareFields } } } }
`,
  [ShareFields],
);
const ShareVfolder = graphql(
  `
  mutation ShareVfolder($input: ShareVfolderInput!) {
    shareVfolder(input: $input) { results { email error share { ...ShareFields } } }
  }
`,
  [ShareFields],
);
const UpdateShare = graphql(
  `
  mutation UpdateVfolderShare($input: UpdateVfolderShareInput!) {
    updateVfolderShare(input: $input) { share { ...ShareFields } }
  }
`,
  [ShareFields],
);
const SetMembersPermission = graphql(`
  mutation SetMembersPermission($input: UpdateVfolderInput!) {
    updateVfolder(input: $input) { vfolder { id permission } }
  }
`);
export const RemoveShare = graphql(
  `
  mutation RevokeVfolderShare($input: RevokeVfolderShareInput!) {
    revokeVfolderShare(input: $input) { share { ...ShareFields } }
  }
`,
  [ShareFields],
);

interface Props {
  folder: { id: string; name: string; project: { id: string; name: string } | null; permission: FolderPermission };
  onClose: () => void;
}

/** Shows which users can use a folder in addition to its owner or the members of its project. */
export function ShareDialog({ folder, onClose }: Props) {
  useFocusBack();
  const { data, failure, refetch } = useLiveQuery({ query: SharesQuery, variables: { id: folder.id } });
  const again = useDebouncedCallback(refetch, { delay: 300, maxWait: 300 });
  useSubscription({ query: SharesChanged }, (_, change) => {
    again();
    return change;
  });
  const shares = liveShares(data?.node && "shares" in data.node ? data.node.shares : []);
  return (
    <Modal
      opened
      onClose={onClose}
      size={620}
      title={t("Share {{name}}", { name: folder.name })}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <div className="stack">
        {folder.project ? (
          <p className="dim">
            {t(
              "All members of {{project}} have the same permission. To give one member more or less, set a permission for that member. It takes precedence.",
              { project: folder.project.name },
            )}
          </p>
        ) : null}
        {folder.project ? <All folder={folder} project={folder.project.name} /> : null}
        <Invite folder={folder} onDone={refetch} />
        <section aria-label={folder.project ? t("Members with their own permission") : t("Shared with")}>
          <h3>{folder.project ? t("Members with their own permission") : t("Shared with")}</h3>
          <FailureNote failure={failure} />
          {data && shares.length === 0 ? (
            <p className="dim">
              {folder.project ? t("None. All members have the permission above.") : t("Not shared yet.")}
            </p>
          ) : null}
          <ul className="rows">
            {shares.map((s) => (
              <Row key={s.id} share={s} onDone={refetch} />
            ))}
          </ul>
        </section>
      </div>
    </Modal>
  );
}

/** Edits the permission of project members who have no permission of their own. */
function All({ folder, project }: { folder: Props["folder"]; project: string }) {
  const { run, busy, failure } = useAction(SetMembersPermission);
  return (
    <>
      <PermissionSelect
        label={t("Permission of all members of {{project}}", { project })}
        value={folder.permission}
        disabled={busy}
        onChange={(permission) => void run({ input: { id: folder.id, permission } })}
      />
      <FailureNote failure={failure} />
    </>
  );
}

function Invite({ folder, onDone }: { folder: Props["folder"]; onDone: () => void }) {
  const { run, busy, failure, clear } = useAction(ShareVfolder);
  const [text, setText] = useState("");
  const [permission, setPermission] = useState<FolderPermission>("READ_ONLY");
  const [refused, setRefused] = useState<{ email: string; error: string }[]>([]);
  const emails = addresses(text);
  const { field, rest } = byField(failure, ["emails", "permission"]);
  const tooMany =
    emails.length > maxInvitations
      ? t("Invite at most {{count}} people at once.", { count: maxInvitations })
      : undefined;

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    setRefused([]);
    const done = await run({ input: { id: folder.id, emails, permission } });
    if (!done) return;
    const wrong = done.shareVfolder.results.flatMap((r) => (r.error ? [{ email: r.email, error: r.error }] : []));
    setRefused(wrong);
    setText(wrong.map((w) => w.email).join("\n"));
    onDone();
  }
  return (
    <form className="stack small" onSubmit={submit}>
      <Textarea
        label={t("E-mail addresses")}
        autosize
        minRows={1}
        maxRows={6}
        data-autofocus
        value={text}
        error={tooMany ?? field.emails}
        description={
          folder.project
            ? t("Members of {{project}}, one per line or separated by commas.", { project: folder.project.name })
            : t(
                "One per line or separated by commas. Invited users see the invitation on the Data page and can decline it.",
              )
        }
        onChange={(e) => {
          clear();
          setText(e.currentTarget.value);
        }}
      />
      <div className="row" style={{ alignItems: "flex-end" }}>
        <div style={{ flex: 1 }}>
          <PermissionSelect
            label={t("Permission")}
            value={permission}
            error={field.permission}
            onChange={setPermission}
          />
        </div>
        <Button type="submit" loading={busy} disabled={emails.length === 0 || tooMany !== undefined}>
          {folder.project
            ? t("Set")
            : emails.length > 1
              ? t("Invite {{count}}", { count: emails.length })
              : t("Invite")}
        </Button>
      </div>
      {refused.length > 0 ? (
        <div className="failure" role="alert">
          {refused.map((r) => (
            <div key={r.email}>
              <b>{r.email}</b>: {r.error}
            </div>
          ))}
        </div>
      ) : null}
      <FailureNote failure={rest} />
    </form>
  );
}

function Row({ share, onDone }: { share: Share; onDone: () => void }) {
  const change = useAction(UpdateShare);
  const remove = useAction(RemoveShare);
  const busy = change.busy || remove.busy;
  return (
    <li style={{ flexWrap: "wrap", paddingLeft: 0, paddingRight: 0 }}>
      <span className="clip" style={{ flex: "1 1 180px" }}>
        {share.email}
        {share.user?.fullName ? <span className="dim"> {share.user.fullName}</span> : null}
        {share.status === "PENDING" ? (
          <>
            {" "}
            <span className="badge tone-wait">{t("invited")}</span>
          </>
        ) : null}
      </span>
      <PermissionSelect
        bare
        label={t("Permission of {{email}}", { email: share.email })}
        value={share.permission}
        disabled={busy}
        onChange={async (permission) => {
          if (await change.run({ input: { id: share.id, permission } })) onDone();
        }}
      />
      <Button
        variant="subtle"
        color="red"
        size="compact-sm"
        loading={remove.busy}
        aria-label={
          share.status === "PENDING"
            ? t("Revoke the invitation of {{name}}", { name: share.email })
            : t("Remove {{name}}", { name: share.email })
        }
        onClick={async () => {
          if (await remove.run({ input: { id: share.id } })) onDone();
        }}
      >
        {share.status === "PENDING" ? t("Revoke") : t("Remove")}
      </Button>
      {change.failure || remove.failure ? (
        <div style={{ flexBasis: "100%" }}>
          <FailureNote failure={change.failure ?? remove.failure} />
        </div>
      ) : null}
    </li>
  );
}
