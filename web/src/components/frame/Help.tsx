import { Modal } from "@mantine/core";
import { t } from "../../i18n";

const keys: [string[], string][] = [
  [["L"], "Launch a session"],
  [["Ctrl", "K"], "Search for a page, session or folder, or run a command"],
  [["/"], "Filter the list"],
  [["G", "H"], "Go to Home"],
  [["G", "S"], "Go to Sessions"],
  [["G", "V"], "Go to Serving"],
  [["G", "T"], "Go to Chat"],
  [["G", "Q"], "Go to Queue"],
  [["G", "D"], "Go to Data"],
  [["G", "C"], "Go to Cluster"],
  [["G", "A"], "Go to Admin"],
  [["1"], "In a chat: the first answer is the best (2 to 8: the others, 0: none)"],
  [["?"], "Show this help"],
  [["Esc"], "Close the open window or menu"],
];

export function Help({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={t("Keyboard shortcuts")}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <dl className="facts">
        {keys.map(([names, does]) => (
          <div key={does} style={{ display: "contents" }}>
            <dt>
              {names.map((n) => (
                <kbd key={n} className="key" style={{ marginRight: 4 }}>
                  {n}
                </kbd>
              ))}
            </dt>
            <dd>{t(does)}</dd>
          </div>
        ))}
      </dl>
    </Modal>
  );
}
