import { Button, Menu } from "@mantine/core";
import { useAction } from "../../hooks/useAction";
import { language, t } from "../../i18n";
import { when } from "../format";
import { Copy } from "../Note";
import { defaultRateLimit, type Keypair, UpdateKeypair } from "./keypair";

interface Props {
  keypair: Keypair;
  onEdit: () => void;
  onAsk: (what: "rotate" | "delete") => void;
  onChanged: () => void;
}

export function KeypairRow({ keypair: k, onEdit, onAsk, onChanged }: Props) {
  const update = useAction(UpdateKeypair, true);
  const change = async (more: { active?: boolean; makeDefault?: boolean }) => {
    if (await update.run({ input: { id: k.id, ...more } })) onChanged();
  };
  return (
    <li>
      <div className="entry">
        <div className="row tight">
          <b>{k.name}</b> <code>{k.accessKey}</code>{" "}
          <Copy value={k.accessKey} label={t("Copy the access key of {{name}}", { name: k.name })} />
          {k.isDefault ? <span className="tag on">{t("default")}</span> : null}
          {k.status === "ACTIVE" ? null : (
            <span className="tag">{k.status === "EXPIRED" ? t("expired") : t("inactive")}</span>
          )}
        </div>
        <div className="dim">
          {k.lastUsedAt ? t("used {{at}}", { at: when(k.lastUsedAt) }) : t("never used")} ·{" "}
          {t("created {{at}}", { at: when(k.createdAt) })}
          {k.rotatedAt ? ` · ${t("secret replaced {{at}}", { at: when(k.rotatedAt) })}` : ""}
          {k.expiresAt ? ` · ${t("expires {{at}}", { at: when(k.expiresAt) })}` : ""}
          {k.makerID ? ` · ${t("expires with the credential that created it")}` : ""} ·{" "}
          {t("{{n}} requests per 15 minutes", { n: (k.rateLimit ?? defaultRateLimit).toLocaleString(language()) })}
        </div>
      </div>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <Button
            variant="default"
            size="compact-xs"
            loading={update.busy}
            aria-label={t("Edit {{name}}", { name: k.name })}
          >
            {t("Edit")}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={onEdit}>{t("Edit…")}</Menu.Item>
          {k.isDefault ? null : (
            <Menu.Item onClick={() => void change({ makeDefault: true })}>{t("Make default")}</Menu.Item>
          )}
          <Menu.Item onClick={() => void change({ active: !k.active })}>
            {k.active ? t("Deactivate") : t("Activate")}
          </Menu.Item>
          <Menu.Item onClick={() => onAsk("rotate")}>{t("New secret…")}</Menu.Item>
          <Menu.Item color="red" onClick={() => onAsk("delete")}>
            {t("Delete…")}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </li>
  );
}
