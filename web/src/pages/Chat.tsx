import { Button, Drawer } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import { useParams } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { Chats } from "../components/chat/Chats";
import { ChatView } from "../components/chat/ChatView";
import { ModelsQuery } from "../components/chat/chat";
import { ListButton } from "../components/chat/listButton";
import { NewChat } from "../components/chat/NewChat";
import { FailureNote } from "../components/Note";
import { useDeploymentsChanged } from "../components/serving/useDeploymentsChanged";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { t } from "../i18n";
import "../components/chat/chat.css";

function useModels() {
  const { data, failure, refetch } = useLiveQuery({ query: ModelsQuery });
  useDeploymentsChanged(refetch);
  return { models: data?.chatModels ?? [], loaded: data !== undefined, failure };
}

/** The list of chats beside one of them. On narrow screens, the list is a drawer. */
function Layout({ current, stamp, children }: { current: string | null; stamp: string; children: ReactNode }) {
  const narrow = useMediaQuery("(max-width: 860px)", undefined, { getInitialValueInEffect: false });
  const [opened, drawer] = useDisclosure(false);
  const button = narrow ? (
    <Button variant="default" onClick={drawer.open}>
      {t("Chats")}
    </Button>
  ) : null;
  return (
    <div className="chat">
      {narrow ? (
        <Drawer
          opened={opened}
          onClose={drawer.close}
          size={320}
          title={t("Chats")}
          closeButtonProps={{ "aria-label": t("Close") }}
        >
          <Chats current={current} stamp={stamp} onOpen={drawer.close} />
        </Drawer>
      ) : (
        <Chats current={current} stamp={stamp} />
      )}
      <ListButton.Provider value={button}>{children}</ListButton.Provider>
    </div>
  );
}

/** A new chat: /chat, or /chat?models=a,b&prompt=… */
export function NewChatPage() {
  const { models, loaded, failure } = useModels();
  return (
    <Layout current={null} stamp="">
      <div className="chat-side">
        <FailureNote failure={failure} what={t("The models could not be loaded")} />
        <NewChat models={models} loaded={loaded} />
      </div>
    </Layout>
  );
}

/** An open chat: /chat/ID */
export function ChatPage() {
  const { id } = useParams({ from: "/frame/chat/$id" });
  const { models } = useModels();
  const [stamp, setStamp] = useState("");
  return (
    <Layout current={id} stamp={stamp}>
      <div className="chat-side">
        <ChatView key={id} id={id} models={models} onChanged={setStamp} />
      </div>
    </Layout>
  );
}
