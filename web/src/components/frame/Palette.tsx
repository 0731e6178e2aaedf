import { Modal, TextInput, useMantineColorScheme, VisuallyHidden } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { logout } from "../../api/auth";
import { graphql } from "../../api/graphql";
import { useLaunch } from "../../hooks/useLaunch";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { stateWord } from "../../words";
import { pages as account } from "../account/nav";
import { groups } from "../admin/nav";
import { rank } from "../rank";

const PaletteQuery = graphql(`
  query Palette {
    sessions(first: 50, orderBy: [{ field: CREATED_AT, direction: DESC }]) { edges { node { id version name status } } }
    vfolders(first: 50) { edges { node { id name } } }
    deployments(first: 50, where: { endedAtIsNil: true }) { edges { node { id name } } }
    chats(first: 50, orderBy: [{ field: UPDATED_AT, direction: DESC }]) { edges { node { id title } } }
  }
`);

interface Entry {
  label: string;
  kind: string;
  run: () => void;
}

export default function Palette({ onClose, onHelp }: { onClose: () => void; onHelp: () => void }) {
  const { data } = useLiveQuery({ query: PaletteQuery });
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const navigate = useNavigate();
  const viewer = useViewer();
  const launch = useLaunch();
  const { setColorScheme } = useMantineColorScheme();
  const go = (to: string) => () => void navigate({ to });

  const entries: Entry[] = [
    { label: t("Launch a session"), kind: t("action"), run: () => launch() },
    ...["Home", "Sessions", "Serving", "Chat", "Queue", "Data", "Cluster"].map((p) => ({
      label: t(p),
      kind: t("page"),
      run: go(p === "Home" ? "/" : `/${p.toLowerCase()}`),
    })),
    ...groups
      .flatMap((g) => g.pages.filter((p) => p.for(viewer)))
      .map((p) => ({ label: `${t("Admin")}: ${t(p.label)}`, kind: t("page"), run: go(p.to) })),
    ...account.map((p) => ({ label: `${t("Account")}: ${t(p.label)}`, kind: t("page"), run: go(p.to) })),
    ...(data?.sessions.edges ?? []).flatMap((e) =>
      e?.node
        ? [
            {
              label: e.node.name,
              kind: `${t("session")} · ${stateWord(e.node.status)}`,
              run: go(`/sessions/${e.node.id}`),
            },
          ]
        : [],
    ),
    ...(data?.vfolders.edges ?? []).flatMap((e) =>
      e?.node ? [{ label: e.node.name, kind: t("folder"), run: go(`/data/${e.node.id}`) }] : [],
    ),
    ...(data?.deployments.edges ?? []).flatMap((e) =>
      e?.node ? [{ label: e.node.name, kind: t("deployment"), run: go(`/serving/${e.node.id}`) }] : [],
    ),
    ...(data?.chats.edges ?? []).flatMap((e) =>
      e?.node ? [{ label: e.node.title || t("Untitled"), kind: t("chat"), run: go(`/chat/${e.node.id}`) }] : [],
    ),
    { label: t("Light theme"), kind: t("action"), run: () => setColorScheme("light") },
    { label: t("Dark theme"), kind: t("action"), run: () => setColorScheme("dark") },
    { label: t("Keyboard shortcuts"), kind: t("action"), run: onHelp },
    { label: t("Log out"), kind: t("action"), run: () => void logout() },
  ];
  const hits = rank(entries, text).slice(0, 40);
  const chosen = Math.min(at, hits.length - 1);

  function pick(entry: Entry | undefined) {
    if (!entry) return;
    onClose();
    entry.run();
  }
  function press(event: React.KeyboardEvent) {
    if (event.key === "Enter") pick(hits[chosen]);
    else if (event.key === "ArrowDown") setAt((chosen + 1) % Math.max(1, hits.length));
    else if (event.key === "ArrowUp") setAt((chosen - 1 + hits.length) % Math.max(1, hits.length));
    else return;
    event.preventDefault();
  }

  return (
    <Modal
      opened
      onClose={onClose}
      withCloseButton={false}
      centered={false}
      yOffset="12vh"
      size={560}
      title={<VisuallyHidden>{t("Search or run a command")}</VisuallyHidden>}
      styles={{ header: { padding: 0, minHeight: 16 } }}
    >
      <TextInput
        size="md"
        value={text}
        placeholder={t("Search or run a command")}
        aria-label={t("Search or run a command")}
        role="combobox"
        aria-expanded
        aria-controls="palette-list"
        aria-activedescendant={hits[chosen] ? `palette-${chosen}` : undefined}
        data-autofocus
        autoComplete="off"
        onKeyDown={press}
        onChange={(e) => {
          setText(e.currentTarget.value);
          setAt(0);
        }}
      />
      <ul className="palette-list" id="palette-list" role="listbox" aria-label={t("Search results")}>
        {hits.map((entry, i) => (
          <li
            key={`${entry.kind} ${entry.label} ${i}`}
            id={`palette-${i}`}
            role="option"
            aria-selected={i === chosen}
            ref={(node) => {
              if (i === chosen) node?.scrollIntoView({ block: "nearest" });
            }}
            onMouseMove={() => setAt(i)}
            onClick={() => pick(entry)}
          >
            <span className="clip">{entry.label}</span>
            <span className="kind">{entry.kind}</span>
          </li>
        ))}
      </ul>
      {hits.length === 0 ? <p className="dim">{t("No results")}</p> : null}
    </Modal>
  );
}
