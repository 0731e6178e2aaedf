import { Button } from "@mantine/core";
import { t } from "../../../i18n";
import { Cli } from "../../Note";

/** A secret that was just made, and is not shown again; without one, only that it is done. */
export function ShownOnce({ said, secret, onClose }: { said: string; secret: string | null; onClose: () => void }) {
  return (
    <div className="stack" role="status">
      <p>{said}</p>
      {secret ? <Cli line={secret} /> : null}
      <div className="row" style={{ justifyContent: "flex-end" }}>
        <Button autoFocus onClick={onClose}>
          {t("Done")}
        </Button>
      </div>
    </div>
  );
}
