import { Button } from "@mantine/core";
import { useEffect, useRef } from "react";
import { t } from "../../i18n";
import { Copy } from "../Note";
import { save } from "../save";

/** Shows recovery codes, which replace the authenticator app at a login. The server shows them only once. */
export function RecoveryCodes({ codes, done, onDone }: { codes: string[]; done: string; onDone: () => void }) {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus(), []);
  const text = `${codes.join("\n")}\n`;
  return (
    <section className="once to-print stack" aria-labelledby="recovery">
      <h2 id="recovery" tabIndex={-1} ref={title} style={{ outline: "none" }}>
        {t("Save these recovery codes")}
      </h2>
      <p className="print-only">{location.origin}</p>
      <p>
        {t(
          "Each code lets you log in once without your phone. The codes are shown only now, and older codes no longer work.",
        )}
      </p>
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
        <Button variant="default" onClick={() => window.print()}>
          {t("Print")}
        </Button>
        <Copy value={text} label={t("Copy recovery codes")} />
        <Button className="push" onClick={onDone}>
          {done}
        </Button>
      </div>
    </section>
  );
}
