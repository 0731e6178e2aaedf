import { Button } from "@mantine/core";
import { t } from "../../../i18n";
import { Cli } from "../../Note";

/** Shows a new secret, which is not shown again. Without a secret, it only reports success. */
export function ShownOnce({ text, secret, onClose }: { text: string; secret: string | null; onClose: () => void }) {
  return (
    <div className="stack" role="status">
      <p>{text}</p>
      {secret ? <Cli line={secret} /> : null}
      <div className="row" style={{ justifyContent: "flex-end" }}>
        <Button autoFocus onClick={onClose}>
          {t("Done")}
        </Button>
      </div>
    </div>
  );
}
