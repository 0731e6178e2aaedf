import { Button, Progress } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { stateWord, word } from "../../words";
import { Part, SidePanel } from "../admin/Panel";
import { nodesOf, usePages } from "../admin/usePages";
import { when } from "../format";
import { Empty, FailureNote } from "../Note";
import { MarkRead, type Notice, NoticesQuery, pathOf, RunningTasksQuery, textOf } from "./notice";
import "./notices.css";

interface Props {
  onClose: () => void;
  onRead: () => void;
}

/** The notices of the viewer, and the work that runs for them. */
export default function NoticeDrawer({ onClose, onRead }: Props) {
  const list = usePages({ query: NoticesQuery, variables: {}, pick: (data) => data.notices });
  const mark = useAction(MarkRead, true);
  const unread = list.rows.some((n) => n.readAt === null);
  async function read(ids?: string[]) {
    if (!(await mark.run({ input: ids ? { ids } : {} }))) return;
    onRead();
    list.reload();
  }
  return (
    <SidePanel title={t("Notices")} onClose={onClose}>
      <RunningTasks />
      <div className="row">
        <Link to="/account/notices" onClick={onClose}>
          {t("Settings of notices")}
        </Link>
        <Button className="push" variant="default" disabled={!unread} loading={mark.busy} onClick={() => void read()}>
          {t("Mark all as read")}
        </Button>
      </div>
      <FailureNote failure={list.failure} />
      {!list.loading && !list.failure && list.rows.length === 0 ? (
        <Empty title={t("No notices yet")}>
          <span>{t("Here you see when sessions fail or end, when someone shares a folder with you, and more.")}</span>
        </Empty>
      ) : null}
      <ul className="notices">
        {list.rows.map((n) => (
          <Entry key={n.id} notice={n} onOpen={onClose} onRead={() => void read([n.id])} />
        ))}
      </ul>
      {list.more ? (
        <Button variant="default" loading={list.loading} onClick={list.more}>
          {t("Show more")}
        </Button>
      ) : null}
    </SidePanel>
  );
}

function Entry({ notice, onOpen, onRead }: { notice: Notice; onOpen: () => void; onRead: () => void }) {
  const unread = notice.readAt === null;
  return (
    <li className={`${notice.severity.toLowerCase()}${unread ? " unread" : ""}`}>
      <Link
        to={pathOf(notice)}
        onClick={() => {
          if (unread) onRead();
          onOpen();
        }}
      >
        {textOf(notice)}
      </Link>
      <div className="row tight dim">
        <span>{word("NoticeSeverity", notice.severity)}</span>
        <time dateTime={notice.createdAt}>{when(notice.createdAt)}</time>
        {unread ? (
          <Button className="push" variant="subtle" size="compact-xs" onClick={onRead}>
            {t("Mark as read")}
          </Button>
        ) : null}
      </div>
    </li>
  );
}

/** The tasks of the viewer that have not ended, with their progress. */
function RunningTasks() {
  const { data } = useLiveQuery({ query: RunningTasksQuery, requestPolicy: "cache-and-network" });
  const tasks = nodesOf(data?.tasks);
  if (tasks.length === 0) return null;
  return (
    <Part title={t("In progress")}>
      {tasks.map((task) => {
        const percent = task.total > 0 ? Math.min(100, Math.round((100 * task.done) / task.total)) : 0;
        const name = task.title || task.kind;
        return (
          <div key={task.id}>
            <div className="row tight">
              <span>{name}</span>
              <span className="push dim">{task.total > 0 ? `${percent} %` : stateWord(task.status)}</span>
            </div>
            <Progress value={percent} aria-label={name} />
          </div>
        );
      })}
    </Part>
  );
}
