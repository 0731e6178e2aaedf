import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { Confirm } from "../Confirm";
import { RemoveShare } from "./ShareDialog";
import type { Share } from "./share";

/** Asks for a confirmation before the viewer leaves a shared folder. */
export function Leave({
  share,
  onClose,
  onLeft,
}: {
  share: Pick<Share, "id" | "vfolderName"> | null;
  onClose: () => void;
  onLeft: () => void;
}) {
  const { run, busy, failure, clear } = useAction(RemoveShare);
  function close() {
    clear();
    onClose();
  }
  return (
    <Confirm
      opened={share !== null}
      title={t("Leave {{name}}?", { name: share?.vfolderName ?? "" })}
      action={t("Leave")}
      busy={busy}
      failure={failure}
      onClose={close}
      onConfirm={async () => {
        if (!share || !(await run({ input: { id: share.id } }))) return;
        close();
        onLeft();
      }}
    >
      {t(
        "You lose access to its files, and it is unmounted from your running sessions. To get access again, you need another invitation.",
      )}
    </Confirm>
  );
}
