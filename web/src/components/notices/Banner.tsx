import { lazy, Suspense } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { word } from "../../words";

const Markdown = lazy(() => import("./AnnouncementText"));

const CurrentQuery = graphql(`
  query CurrentAnnouncements { currentAnnouncements { id text severity dismissable } }
`);
const Dismiss = graphql(`
  mutation DismissAnnouncement($input: DismissAnnouncementInput!) { dismissAnnouncement(input: $input) { id } }
`);

type Announcement = ResultOf<typeof CurrentQuery>["currentAnnouncements"][number];

/** The announcements to the viewer, on top of every page. */
export function Banner() {
  const { data, refetch } = useLiveQuery({ query: CurrentQuery });
  const hide = useAction(Dismiss, true);
  return (
    <>
      {(data?.currentAnnouncements ?? []).map((a: Announcement) => (
        <section
          key={a.id}
          className={`notice announcement ${a.severity.toLowerCase()}`}
          aria-label={`${t("Announcement")}, ${word("NoticeSeverity", a.severity)}`}
        >
          <b>{word("NoticeSeverity", a.severity)}</b>
          <Suspense fallback={<span>{a.text}</span>}>
            <Markdown text={a.text} />
          </Suspense>
          {a.dismissable ? (
            <button
              type="button"
              className="linkish push"
              onClick={() => void hide.run({ input: { id: a.id } }).then((done) => done && refetch())}
            >
              {t("Hide")}
            </button>
          ) : null}
        </section>
      ))}
    </>
  );
}
