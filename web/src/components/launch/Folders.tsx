import { Checkbox } from "@mantine/core";
import { t } from "../../i18n";
import type { LaunchDraft } from "./request";

interface Offered {
  id: string;
  name: string;
  permissions: readonly string[];
  owner: { email: string } | null;
  myShare: { status: string; inviterEmail: string | null } | null;
}

interface Props {
  all: Offered[];
  chosen: LaunchDraft["folders"];
  onChoose: (folders: LaunchDraft["folders"]) => void;
  error?: string;
  /** Paths of folders that are not mounted below /home/work, by ID. */
  targets?: Record<string, string>;
}

const writable = (f: Offered) => f.permissions.includes("WRITE_FILES");

/** Selects the folders that are mounted in the session, each below /home/work. */
export function Folders({ all, chosen, onChoose, error, targets = {} }: Props) {
  const picked = new Map(chosen.map((f) => [f.id, f]));
  return (
    <fieldset className="legendless">
      <legend>{t("Folders")}</legend>
      {all.length === 0 ? (
        <p className="dim">{t("No folders yet. Files outside folders are lost when the session ends.")}</p>
      ) : null}
      <div
        className="stack small"
        style={{ maxHeight: 160, overflow: "auto" }}
        tabIndex={all.length > 5 ? 0 : undefined}
      >
        {all
          .filter((f) => f.permissions.includes("READ_FILES"))
          .map((f) => (
            <div key={f.id} className="row">
              <Checkbox
                label={f.name}
                checked={picked.has(f.id)}
                onChange={(e) =>
                  onChoose(
                    e.currentTarget.checked
                      ? [...chosen, { id: f.id, readOnly: !writable(f) }]
                      : chosen.filter((c) => c.id !== f.id),
                  )
                }
              />
              {f.myShare?.status === "ACCEPTED" ? (
                <span className="dim clip">
                  {t("from {{who}}", { who: f.owner?.email ?? f.myShare.inviterEmail ?? t("someone") })}
                </span>
              ) : null}
              {writable(f) ? null : <span className="badge dim">{t("you can only read it")}</span>}
              {picked.has(f.id) ? (
                <>
                  <code className="dim">{targets[f.id] ?? `/home/work/${f.name}`}</code>
                  <Checkbox
                    className="push"
                    label={t("read-only")}
                    aria-label={t("{{name}} read-only", { name: f.name })}
                    checked={picked.get(f.id)!.readOnly}
                    disabled={!writable(f)}
                    onChange={(e) =>
                      onChoose(chosen.map((c) => (c.id === f.id ? { ...c, readOnly: e.currentTarget.checked } : c)))
                    }
                  />
                </>
              ) : null}
            </div>
          ))}
      </div>
      {error ? (
        <p className="bad" role="alert">
          {error}
        </p>
      ) : null}
    </fieldset>
  );
}
