import { UnstyledButton } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { useSubscription } from "urql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { NoticeAdded, pathOf, textOf, UnreadQuery } from "./notice";

const NoticeDrawer = lazy(() => import("./NoticeDrawer"));

/** The number of unread notices, and the list of them. */
export function Bell() {
  const { data, refetch } = useLiveQuery({ query: UnreadQuery });
  const [opened, setOpened] = useState(false);
  const unread = data?.unreadNotices ?? 0;
  useSubscription({ query: NoticeAdded }, (_, { noticeAdded: n }) => {
    refetch();
    const text = textOf(n);
    const to = pathOf(n);
    if (n.browser && "Notification" in window && Notification.permission === "granted" && document.hidden) {
      // The tag makes several tabs show one notification.
      const shown = new Notification("Berth", { body: text, tag: n.id });
      shown.onclick = () => {
        window.focus();
        location.assign(to);
      };
    } else if (!n.kind.startsWith("SESSION_") || n.kind === "SESSION_FAILED") {
      toast({ text, link: { label: t("Open"), to } });
    }
    return { noticeAdded: n };
  });
  const most = unread >= 100 ? "99+" : unread;
  return (
    <>
      <UnstyledButton
        className="bell"
        aria-haspopup="dialog"
        aria-label={unread > 0 ? t("Notices, {{unread}} unread", { unread }) : t("Notices")}
        title={t("Notices")}
        onClick={() => setOpened(true)}
      >
        <svg width="18" height="18" viewBox="0 0 24 24" fill="none" aria-hidden="true">
          <path
            d="M6 10a6 6 0 0 1 12 0c0 5 2 6 2 7H4c0-1 2-2 2-7Zm4 10a2 2 0 0 0 4 0"
            stroke="currentColor"
            strokeWidth="1.8"
            strokeLinejoin="round"
          />
        </svg>
        {unread > 0 ? (
          <span className="bell-count" aria-hidden="true">
            {most}
          </span>
        ) : null}
      </UnstyledButton>
      <Suspense>{opened ? <NoticeDrawer onClose={() => setOpened(false)} onRead={refetch} /> : null}</Suspense>
    </>
  );
}
