import { Button } from "@mantine/core";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { when } from "../format";
import { FailureNote } from "../Note";
import { permissionWord, type Share, ShareFields } from "./share";
import { useInvitations } from "./useInvitations";

const AcceptShare = graphql(
  `
  mutation AcceptVfolderShare($input: AcceptVfolderShareInput!) {
    acceptVfolderShare(input: $input) { share { ...ShareFields vfolder { id } } }
  }
`,
  [ShareFields],
);
const DeclineShare = graphql(
  `
  mutation DeclineVfolderShare($input: DeclineVfolderShareInput!) {
    declineVfolderShare(input: $input) { share { ...ShareFields } }
  }
`,
  [ShareFields],
);

/** Shows the viewer's invitations to folders; nothing if there are none. */
export function Invitations({ onAccepted }: { onAccepted: () => void }) {
  const { rows, failure, refetch } = useInvitations();
  if (failure) return <FailureNote failure={failure} what={t("The invitations could not be loaded")} />;
  if (rows.length === 0) return null;
  return (
    <section className="panel" aria-labelledby="invitations">
      <div className="panel-head">
        <h2 id="invitations">{t("Invitations")}</h2>
        <span className="dim">{rows.length}</span>
      </div>
      <ul className="rows">
        {rows.map((s) => (
          <Row
            key={s.id}
            share={s}
            onDone={() => {
              refetch();
              onAccepted();
            }}
          />
        ))}
      </ul>
    </section>
  );
}

function Row({ share, onDone }: { share: Share; onDone: () => void }) {
  const accept = useAction(AcceptShare);
  const decline = useAction(DeclineShare);
  const from = share.inviter?.fullName
    ? `${share.inviter.fullName} (${share.inviter.email})`
    : (share.inviterEmail ?? t("someone"));
  return (
    <li style={{ flexWrap: "wrap" }}>
      <span style={{ flex: "1 1 260px" }}>
        <b>{share.vfolderName}</b> <span className="dim">{t("from {{who}}", { who: from })}</span>
        <br />
        {t("You can {{what}}", { what: t(permissionWord(share.permission)) })}{" "}
        <span className="dim">· {when(share.createdAt)}</span>
      </span>
      <Button
        variant="default"
        loading={decline.busy}
        disabled={accept.busy}
        aria-label={t("Decline {{name}}", { name: share.vfolderName })}
        onClick={async () => {
          if (await decline.run({ input: { id: share.id } })) onDone();
        }}
      >
        {t("Decline")}
      </Button>
      <Button
        loading={accept.busy}
        disabled={decline.busy}
        aria-label={t("Accept {{name}}", { name: share.vfolderName })}
        onClick={async () => {
          const done = await accept.run({ input: { id: share.id } });
          if (!done) return;
          const folder = done.acceptVfolderShare.share.vfolder;
          toast({
            text: t("{{name}} is now in your folders.", { name: share.vfolderName }),
            link: folder ? { label: t("Open"), to: `/data/${folder.id}` } : undefined,
          });
          onDone();
        }}
      >
        {t("Accept")}
      </Button>
      {accept.failure || decline.failure ? (
        <div style={{ flexBasis: "100%" }}>
          <FailureNote failure={accept.failure ?? decline.failure} />
        </div>
      ) : null}
    </li>
  );
}
