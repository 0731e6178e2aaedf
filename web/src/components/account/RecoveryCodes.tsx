import { Button } from "@mantine/core";
import { t } from "../../i18n";
import { Copy } from "../Note";
import { save } from "./save";

/** Codes that let in without the phone; the server shows them this once. */
export function RecoveryCodes({ codes, done, onDone }: { codes: string[]; done: string; onDone: () => void }) {
  const text = `${codes.join("\n")}\n`;
  return (
    <section className="once stack" aria-labelledby="recovery">
      <h2 id="recovery">{t("Keep these recovery codes")}</h2>
      <p>{t("Without your phone, each lets you in once. They are shown only now; older ones do not work any more.")}</p>
      <ul className="codes-list">
        {codes.map((c) => (
          <li key={c}>
            <code>{c}</code>
          </li>
        ))}
      </ul>
      <div className="row">
        <Button variant="default" onClick={() => save("berth-recovery-codes.txt", text)}>
          {t("Download")}
        </Button>
        <Copy value={text} label={t("Copy the recovery codes")} />
        <Button className="push" onClick={onDone}>
          {done}
        </Button>
      </div>
    </section>
  );
}
