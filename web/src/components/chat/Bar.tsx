import { Button, Menu, Switch } from "@mantine/core";
import { lazy, type ReactNode, Suspense, useContext, useState } from "react";
import { useClient } from "urql";
import { fromGraphQL } from "../../api/errors";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { save } from "../save";
import { CopyLink } from "./CopyLink";
import { type Chat, ExportChat, type Model, type Turn, UpdateChat } from "./chat";
import { fileName, toMarkdown } from "./exports";
import type { Head } from "./Heads";
import { ListButton } from "./listButton";
import { hidden } from "./models";
import { TallyDialog } from "./TallyTable";
import type { Picks, Step } from "./tree";
import { visible } from "./visible";

const ReplayDialog = lazy(() => import("./ReplayDialog"));

interface Props {
  chat: Chat;
  steps: readonly Step<Turn>[];
  picks: Picks;
  heads: readonly Head[];
  models: readonly Model[];
  onChat: (chat: Chat) => void;
  children?: ReactNode;
}

/** The title of a chat, its link, and what one can do with the whole chat. */
export function Bar({ chat, steps, picks, heads, models, onChat, children }: Props) {
  const client = useClient();
  const update = useAction(UpdateChat, true);
  const [dialog, setDialog] = useState<"replay" | "tally" | null>(null);
  const last = steps.at(-1)?.turn;

  async function exportJSON() {
    const { data, error } = await client.query(ExportChat, { id: chat.id }, { requestPolicy: "network-only" });
    if (error) toast({ failure: fromGraphQL(error) });
    else if (data) save(fileName(chat.title, "json"), data.exportChat, "application/json");
  }
  return (
    <div className="chat-bar">
      {useContext(ListButton)}
      <h1 className="clip" title={visible(chat.title)}>
        {visible(chat.title) || t("Untitled")}
      </h1>
      {chat.blind ? <span className="badge">{hidden(chat) ? t("blind") : t("blind, names shown")}</span> : null}
      {chat.own ? children : <span className="badge">{t("read-only")}</span>}
      <span className="push row tight">
        {chat.own ? (
          <Switch
            label={t("Shared")}
            title={t("Users of your domain can read the chat with its link.")}
            checked={chat.shared}
            disabled={update.busy}
            onChange={async (e) => {
              const done = await update.run({ input: { id: chat.id, shared: e.currentTarget.checked } });
              if (done) onChat(done.updateChat.chat);
            }}
          />
        ) : null}
        <CopyLink value={`${location.origin}/chat/${chat.id}`} label={t("Copy link of this chat")} />
        <Menu position="bottom-end" withinPortal>
          <Menu.Target>
            <Button variant="default">{t("More")}</Button>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item disabled={!last || hidden(chat)} onClick={() => setDialog("replay")}>
              {t("Replays")}
            </Menu.Item>
            <Menu.Item onClick={() => setDialog("tally")}>{t("Votes of the domain")}</Menu.Item>
            <Menu.Item onClick={() => void exportJSON()}>{t("Export as JSON")}</Menu.Item>
            <Menu.Item
              onClick={() => save(fileName(chat.title, "md"), toMarkdown(chat, steps, picks), "text/markdown")}
            >
              {t("Export as Markdown")}
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      </span>
      {dialog === "tally" ? <TallyDialog onClose={() => setDialog(null)} /> : null}
      {dialog === "replay" && last ? (
        <Suspense fallback={null}>
          <ReplayDialog
            chat={chat.id}
            turn={last.id}
            heads={heads}
            models={models}
            own={chat.own}
            onClose={() => setDialog(null)}
          />
        </Suspense>
      ) : null}
    </div>
  );
}
