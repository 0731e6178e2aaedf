import { Button, FileButton, Menu, TextInput } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useAction } from "../../hooks/useAction";
import { asFailure } from "../../hooks/useCall";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { FilterBox } from "../admin/Filter";
import { FormDialog } from "../admin/Form";
import { type Pages, usePages } from "../admin/usePages";
import { Confirm } from "../Confirm";
import { when } from "../format";
import { FailureNote } from "../Note";
import { ChatsQuery, DeleteChat, ImportChat, UpdateChat } from "./chat";
import { visible } from "./visible";

interface Entry {
  id: string;
  title: string;
  updatedAt: string;
  shared: boolean;
}

/** Bytes of a file that can be imported. */
const mostImport = 8 << 20;

interface Props {
  /** The open chat. */
  current: string | null;
  /** Changes when the list must be read again. */
  stamp: string;
  onOpen?: () => void;
}

/** The viewer's chats, the last used first, with search, renaming and deletion. */
export function Chats({ current, stamp, onOpen }: Props) {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const list: Pages<Entry> = usePages({
    query: ChatsQuery,
    variables: { text: text || null },
    pick: (data) => data.chats,
    size: 30,
  });
  useEffect(() => {
    if (stamp !== "") list.reload();
  }, [stamp]);
  return (
    <nav className="chat-list" aria-label={t("Chats")}>
      <div className="row keep">
        <Button
          onClick={() => {
            onOpen?.();
            void navigate({ to: "/chat" });
          }}
        >
          {t("New chat")}
        </Button>
        <ImportButton onDone={list.reload} />
      </div>
      <FilterBox label={t("Search in chats")} value={text} onChange={setText} />
      <FailureNote failure={list.failure} what={t("The chats could not be loaded")} />
      {list.rows.length === 0 && !list.loading && !list.failure ? (
        <p className="dim">{text ? t("No chat contains this text") : t("No chats yet")}</p>
      ) : null}
      <ul>
        {list.rows.map((c) => (
          <Item key={c.id} chat={c} open={c.id === current} onOpen={onOpen} onChanged={list.reload} />
        ))}
      </ul>
      {list.more ? (
        <Button variant="default" loading={list.loading} onClick={list.more}>
          {t("Show more")}
        </Button>
      ) : null}
    </nav>
  );
}

interface ItemProps {
  chat: Entry;
  open: boolean;
  onOpen?: () => void;
  onChanged: () => void;
}

function Item({ chat, open, onOpen, onChanged }: ItemProps) {
  const navigate = useNavigate();
  const [asking, setAsking] = useState<"rename" | "delete" | null>(null);
  const update = useAction(UpdateChat);
  const remove = useAction(DeleteChat);
  const [title, setTitle] = useState(chat.title);
  const name = visible(chat.title) || t("Untitled");
  const close = () => setAsking(null);
  return (
    <li aria-current={open ? "page" : undefined}>
      <Link to="/chat/$id" params={{ id: chat.id }} onClick={onOpen} className="chat-entry">
        <span className="clip">{name}</span>
        <span className="dim">
          {when(chat.updatedAt)}
          {chat.shared ? ` · ${t("shared")}` : ""}
        </span>
      </Link>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <Button variant="subtle" size="compact-xs" aria-label={t("Actions of {{name}}", { name })}>
            ⋯
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            onClick={() => {
              setTitle(chat.title);
              setAsking("rename");
            }}
          >
            {t("Rename")}
          </Menu.Item>
          <Menu.Item color="red" onClick={() => setAsking("delete")}>
            {t("Delete")}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {asking === "rename" ? (
        <FormDialog
          title={t("Rename {{name}}", { name })}
          submit={t("Rename")}
          fields={["title"]}
          busy={update.busy}
          failure={update.failure}
          disabled={title.trim() === "" || title === chat.title}
          onClose={close}
          onSubmit={async () => {
            if (!(await update.run({ input: { id: chat.id, title } }))) return;
            close();
            onChanged();
          }}
        >
          {(wrong) => (
            <TextInput
              label={t("Title")}
              maxLength={200}
              data-autofocus
              value={title}
              error={wrong.title}
              onChange={(e) => setTitle(e.currentTarget.value)}
            />
          )}
        </FormDialog>
      ) : null}
      <Confirm
        opened={asking === "delete"}
        title={t("Delete {{name}}?", { name })}
        action={t("Delete")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={close}
        onConfirm={async () => {
          if (!(await remove.run({ input: { id: chat.id } }))) return;
          close();
          onChanged();
          if (open) void navigate({ to: "/chat" });
        }}
      >
        {t("All prompts, answers and files of the chat are lost. Its link no longer works.")}
      </Confirm>
    </li>
  );
}

function ImportButton({ onDone }: { onDone: () => void }) {
  const navigate = useNavigate();
  const add = useAction(ImportChat, true);
  async function read(file: File | null) {
    if (!file) return;
    if (file.size > mostImport) {
      toast({ failure: { code: "INVALID_ARGUMENT", message: t("A chat that is imported can have 8 MiB.") } });
      return;
    }
    try {
      const done = await add.run({ input: { document: await file.text() } });
      if (!done) return;
      onDone();
      void navigate({ to: "/chat/$id", params: { id: done.importChat.chat.id } });
    } catch (error) {
      toast({ failure: asFailure(error) });
    }
  }
  return (
    <FileButton accept="application/json,.json" onChange={(file) => void read(file)}>
      {(button) => (
        <Button {...button} variant="default" loading={add.busy} title={t("Adds a chat from a JSON file")}>
          {t("Import")}
        </Button>
      )}
    </FileButton>
  );
}
