import { Button, Checkbox, PasswordInput, TextInput } from "@mantine/core";
import { t } from "../../../i18n";
import type { Mirror } from "./mirror";

interface Props {
  list: Mirror[];
  error?: string;
  onChange: (list: Mirror[]) => void;
}

/** The servers that agents ask for the images of a registry before the registry itself, in their order. */
export function Mirrors({ list, error, onChange }: Props) {
  const set = (at: number, more: Partial<Mirror>) => onChange(list.map((m, n) => (n === at ? { ...m, ...more } : m)));
  return (
    <fieldset className="stack">
      <legend>{t("Mirrors")}</legend>
      <p className="dim">
        {t(
          "Agents ask these servers for images before they ask the registry, in this order, and check what they get. A mirror gets its own password, or none.",
        )}
      </p>
      {list.map((m, at) => (
        <div key={m.key} className="stack">
          <TextInput
            label={t("Host and port of mirror {{number}}", { number: at + 1 })}
            required
            value={m.host}
            onChange={(e) => set(at, { host: e.currentTarget.value, login: false })}
          />
          <Checkbox
            label={t("Use plain HTTP")}
            checked={m.plainHttp}
            onChange={(e) => set(at, { plainHttp: e.currentTarget.checked })}
          />
          <div className="row">
            <TextInput
              label={
                m.login ? t("New user. Leave empty to keep the stored user and password.") : t("User, if required")
              }
              style={{ flex: 1 }}
              value={m.username}
              onChange={(e) => set(at, { username: e.currentTarget.value })}
            />
            <PasswordInput
              label={t("Password")}
              autoComplete="off"
              style={{ flex: 1 }}
              value={m.password}
              onChange={(e) => set(at, { password: e.currentTarget.value })}
            />
            <Button
              variant="subtle"
              color="red"
              size="compact-xs"
              aria-label={t("Remove mirror {{number}}", { number: at + 1 })}
              onClick={() => onChange(list.filter((_, n) => n !== at))}
            >
              {t("Remove")}
            </Button>
          </div>
        </div>
      ))}
      {error ? <p className="bad">{error}</p> : null}
      <Button
        variant="default"
        size="compact-sm"
        disabled={list.length >= 8}
        onClick={() =>
          onChange([
            ...list,
            { key: crypto.randomUUID(), host: "", plainHttp: false, login: false, username: "", password: "" },
          ])
        }
      >
        {t("Add a mirror")}
      </Button>
    </fieldset>
  );
}
