import { Button, Checkbox, Select } from "@mantine/core";
import { useEffect, useState } from "react";
import type { VariablesOf } from "../../api/graphql";
import { FailureNote } from "../../components/Note";
import { ChannelList } from "../../components/notices/ChannelList";
import { Deliveries } from "../../components/notices/Deliveries";
import {
  type Kind,
  NoticeSettingsQuery,
  type Route,
  routes,
  SetSettings,
  type Settings,
  TestChannel,
} from "../../components/notices/notice";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { word } from "../../words";
import "../../components/notices/notices.css";

const languages = [
  { value: "EN", label: "English" },
  { value: "KO", label: "한국어" },
  { value: "JA", label: "日本語" },
];

/** How notices reach the viewer: routes by kind, channels, and what was sent. */
export function Notices() {
  const { data, failure } = useLiveQuery({ query: NoticeSettingsQuery, requestPolicy: "cache-and-network" });
  const save = useAction(SetSettings, true);
  // The settings have no ID, so the cache does not connect the answer of a change with the query.
  const [changed, setChanged] = useState<Settings | null>(null);
  useEffect(() => setChanged(null), [data]);
  const settings = changed ?? data?.noticeSettings;
  async function set(input: VariablesOf<typeof SetSettings>["input"]) {
    const done = await save.run({ input });
    if (done) setChanged(done.setNoticeSettings.settings);
  }
  return (
    <>
      <div className="page-head">
        <h1>{t("Notices")}</h1>
      </div>
      <FailureNote failure={failure} />
      {settings ? (
        <section className="stack" aria-label={t("What reaches you, and how")}>
          <h2>{t("What reaches you, and how")}</h2>
          <Matrix settings={settings} onChange={(kind, list) => set({ kinds: [{ kind, routes: list }] })} />
          <div className="row">
            <BrowserPermission />
            {settings.mail ? <TestMail /> : <span className="dim">{t("The platform has no mail server.")}</span>}
            <Select
              className="push"
              w={160}
              label={t("Language of mails")}
              allowDeselect={false}
              value={settings.language}
              onChange={(value) => {
                if (value === "EN" || value === "KO" || value === "JA") void set({ language: value });
              }}
              data={languages}
            />
          </div>
        </section>
      ) : null}
      <ChannelList cluster={false} can />
      <Deliveries cluster={false} can />
    </>
  );
}

interface MatrixProps {
  settings: Settings;
  /** Saves the routes of a kind. */
  onChange: (kind: Kind, list: Route[]) => Promise<unknown>;
}

function Matrix({ settings, onChange }: MatrixProps) {
  // What was clicked and is not saved yet, so that boxes change at once and two quick clicks in a row both count.
  const [clicked, setClicked] = useState<Partial<Record<Kind, Route[]>>>({});
  async function change(kind: Kind, list: Route[]) {
    setClicked((old) => ({ ...old, [kind]: list }));
    await onChange(kind, list);
    setClicked((old) => (old[kind] === list ? { ...old, [kind]: undefined } : old));
  }
  return (
    <div className="panel scroll-x">
      <table className="grid notice-matrix" aria-label={t("What reaches you, and how")}>
        <thead>
          <tr>
            <th scope="col">{t("Event")}</th>
            {routes.map((r) => (
              <th key={r} scope="col">
                {word("NoticeRoute", r)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {settings.kinds.map((saved) => {
            const k = { ...saved, routes: clicked[saved.kind] ?? saved.routes };
            return (
              <tr key={k.kind}>
                <th scope="row">
                  {word("NoticeKind", k.kind)}
                  {k.forAdmins ? <span className="dim"> · {t("for administrators")}</span> : null}
                </th>
                {routes.map((r) => (
                  <td key={r}>
                    <Checkbox
                      aria-label={`${word("NoticeKind", k.kind)}: ${word("NoticeRoute", r)}`}
                      disabled={r === "EMAIL" && !settings.mail}
                      checked={k.routes.includes(r)}
                      onChange={(e) =>
                        void change(
                          k.kind,
                          e.currentTarget.checked ? [...k.routes, r] : k.routes.filter((x) => x !== r),
                        )
                      }
                    />
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Asks the browser for the permission to show notifications, only when the person clicks. */
function BrowserPermission() {
  const [state, setState] = useState(() => ("Notification" in window ? Notification.permission : "denied"));
  if (state === "granted") return <span className="dim">{t("This browser shows notifications.")}</span>;
  if (state === "denied") return <span className="dim">{t("This browser does not allow notifications.")}</span>;
  return (
    <Button variant="default" onClick={() => void Notification.requestPermission().then(setState)}>
      {t("Allow notifications in this browser")}
    </Button>
  );
}

function TestMail() {
  const test = useAction(TestChannel, true);
  return (
    <Button
      variant="default"
      loading={test.busy}
      onClick={() =>
        void test.run({ input: {} }).then((out) => {
          if (!out) return;
          const { delivered, message } = out.testNoticeChannel;
          toast({ text: delivered ? t("The mail was sent.") : t("The mail was not sent: {{message}}.", { message }) });
        })
      }
    >
      {t("Send a test mail")}
    </Button>
  );
}
