import { Button, Select, Textarea } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { word, words } from "../../words";
import { FormDialog } from "../admin/Form";
import { type App, AppFields } from "./app";
import { expiries, expiryOf, keep, maxNetworks, networksOf, untilOf } from "./share";

const ShareAppMutation = graphql(
  `mutation ShareApp($input: ShareAppInput!) { shareApp(input: $input) { app { ...AppFields } } }`,
  [AppFields],
);
const UnshareApp = graphql(
  `mutation UnshareApp($input: AppActionInput!) { unshareApp(input: $input) { app { ...AppFields } } }`,
  [AppFields],
);

type Audience = NonNullable<App["sharing"]>["audience"];
const audiences = Object.keys(words.AppAudience) as Audience[];

interface Props {
  session: string;
  app: App;
  onClose: () => void;
}

/** The users who can open an app beside those who can enter its session. */
export function ShareApp({ session, app, onClose }: Props) {
  const share = useAction(ShareAppMutation);
  const unshare = useAction(UnshareApp);
  const { sharing } = app;
  const [audience, setAudience] = useState<Audience>(sharing?.audience ?? "PROJECT");
  const [expiry, setExpiry] = useState(sharing?.expiresAt ? keep : "");
  const [text, setText] = useState(sharing?.networks.join("\n") ?? "");
  const networks = networksOf(text);
  const until = sharing && untilOf(sharing);
  const target = { session, app: app.name, kernel: app.kernelId };

  async function submit() {
    const expiresAt = expiryOf(expiry, sharing?.expiresAt ?? null);
    if (!(await share.run({ input: { ...target, audience, expiresAt, networks } }))) return;
    toast({ text: t("{{name}} is shared.", { name: app.title }) });
    onClose();
  }
  async function stop() {
    if (!(await unshare.run({ input: target }))) return;
    toast({ text: t("{{name}} is no longer shared.", { name: app.title }) });
    onClose();
  }
  return (
    <FormDialog
      title={t("Share {{name}}", { name: app.title })}
      failure={share.failure ?? unshare.failure}
      fields={["audience", "expiresAt", "networks"]}
      submit={sharing ? t("Save") : t("Share")}
      busy={share.busy}
      disabled={networks.length > maxNetworks}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <>
          <p className="dim">
            {t(
              "A shared app has the permissions of the session. For example, a user who opens a shared notebook can run commands in the container and read its folders.",
            )}
          </p>
          {audience === "PUBLIC" ? (
            <p>
              {t(
                "Everybody who knows the address can open the app, without a login. A resource policy says for how long; the time ends at the latest then. Visits do not count as use of the session.",
              )}
            </p>
          ) : null}
          <Select
            label={t("Users who can open it")}
            allowDeselect={false}
            data-autofocus
            value={audience}
            error={wrong.audience}
            onChange={(value) => value && setAudience(value)}
            data={audiences.map((a) => ({ value: a, label: word("AppAudience", a) }))}
          />
          <Select
            label={t("Expires")}
            allowDeselect={false}
            value={expiry}
            error={wrong.expiresAt}
            onChange={(value) => setExpiry(value ?? "")}
            data={[
              ...(until ? [{ value: keep, label: t("On {{at}}", { at: until }) }] : []),
              ...expiries.map((e) => ({ ...e, label: t(e.label) })),
            ]}
          />
          <Textarea
            label={t("Networks")}
            description={t("One per line, such as 10.1.0.0/16. Leave empty to allow all networks.")}
            rows={2}
            value={text}
            error={
              networks.length > maxNetworks
                ? t("Enter at most {{count}} networks.", { count: maxNetworks })
                : wrong.networks
            }
            onChange={(e) => setText(e.currentTarget.value)}
          />
          {sharing ? (
            <div className="row">
              <Button variant="outline" color="red" loading={unshare.busy} onClick={() => void stop()}>
                {t("Stop sharing")}
              </Button>
              <span className="dim">{t("Closes the connections of other users.")}</span>
            </div>
          ) : null}
        </>
      )}
    </FormDialog>
  );
}
