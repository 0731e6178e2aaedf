import { Button, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { Copy, FailureNote } from "../Note";
import { qrPath } from "./qr";
import { RecoveryCodes } from "./RecoveryCodes";

const StartTotp = graphql(`mutation StartTotp { startTotp { secret url } }`);
const ConfirmTotp = graphql(`mutation ConfirmTotp($input: ConfirmTotpInput!) { confirmTotp(input: $input) { codes } }`);

/** The white border that QR readers need, in modules. */
const quiet = 4;

/** Turns on two-step login: scan the code, enter a first code, save the recovery codes. */
export function Enrol({
  begin,
  done,
  onBegin,
  onDone,
}: {
  begin: string;
  done: string;
  onBegin?: () => void;
  onDone: () => void;
}) {
  const start = useAction(StartTotp);
  const confirm = useAction(ConfirmTotp);
  const [made, setMade] = useState<{ secret: string; url: string } | null>(null);
  const [code, setCode] = useState("");
  const [codes, setCodes] = useState<string[] | null>(null);
  const { field, rest } = byField(confirm.failure, ["code"]);

  if (codes) return <RecoveryCodes codes={codes} done={done} onDone={onDone} />;
  if (!made) {
    return (
      <div className="stack">
        <FailureNote failure={start.failure} />
        <div>
          <Button
            loading={start.busy}
            autoFocus
            onClick={async () => {
              const result = await start.run({});
              if (!result) return;
              onBegin?.();
              setMade(result.startTotp);
            }}
          >
            {begin}
          </Button>
        </div>
      </div>
    );
  }
  return (
    <form
      className="stack"
      onSubmit={async (event) => {
        event.preventDefault();
        const result = await confirm.run({ input: { code: code.trim() } });
        if (result) setCodes(result.confirmTotp.codes);
        else setCode("");
      }}
    >
      <div className="enrol">
        <Qr text={made.url} />
        <div className="stack">
          <p>{t("Scan this with an authenticator app on your phone.")}</p>
          <div>
            <p className="dim">{t("Or enter this key in the app:")}</p>
            <code className="key-text">{made.secret.match(/.{1,4}/g)!.join(" ")}</code>{" "}
            <Copy value={made.secret} label={t("Copy key")} />
          </div>
          <TextInput
            label={t("Code from the app")}
            value={code}
            error={field.code}
            required
            autoFocus
            maw={200}
            inputMode="numeric"
            autoComplete="one-time-code"
            maxLength={7}
            onChange={(e) => setCode(e.currentTarget.value)}
          />
        </div>
      </div>
      <FailureNote failure={rest} />
      <div>
        <Button type="submit" loading={confirm.busy} disabled={code.replace(/\D/g, "").length !== 6}>
          {t("Turn on")}
        </Button>
      </div>
    </form>
  );
}

function Qr({ text }: { text: string }) {
  const { size, path } = useMemo(() => qrPath(text), [text]);
  const side = size + 2 * quiet;
  return (
    <svg
      className="qr"
      role="img"
      aria-label={t("QR code with the key for an authenticator app")}
      viewBox={`${-quiet} ${-quiet} ${side} ${side}`}
      shapeRendering="crispEdges"
    >
      <rect x={-quiet} y={-quiet} width={side} height={side} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
