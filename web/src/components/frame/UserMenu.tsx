import { Menu, UnstyledButton, useMantineColorScheme } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { logout } from "../../api/auth";
import { useViewer } from "../../hooks/useViewer";
import { choose, language, languages, t } from "../../i18n";
import { word } from "../../words";

const schemes = [
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
  { value: "auto", label: "Match system" },
] as const;

export function UserMenu({ onPassword, onHelp }: { onPassword: () => void; onHelp: () => void }) {
  const { user } = useViewer();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const navigate = useNavigate();
  const name = user.fullName || user.username || user.email;
  return (
    <Menu position="bottom-end" width={230} withinPortal>
      <Menu.Target>
        <UnstyledButton className="chip" aria-label={t("{{name}}: account and settings", { name })}>
          {name.length > 18 ? `${name.slice(0, 17)}…` : name}
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {user.email} · {word("UserRole", user.role)}
        </Menu.Label>
        <Menu.Item onClick={() => void navigate({ to: "/account" })}>{t("Account")}</Menu.Item>
        <Menu.Item onClick={onPassword}>{t("Change password")}</Menu.Item>
        <Menu.Item onClick={onHelp}>{t("Keyboard shortcuts")}</Menu.Item>
        <Menu.Divider />
        <Menu.Label>{t("Theme")}</Menu.Label>
        {schemes.map((s) => (
          <Menu.Item
            key={s.value}
            role="menuitemradio"
            aria-checked={colorScheme === s.value}
            closeMenuOnClick={false}
            onClick={() => setColorScheme(s.value)}
            rightSection={colorScheme === s.value ? "✓" : null}
          >
            {t(s.label)}
          </Menu.Item>
        ))}
        {languages.length > 1 ? <Menu.Label>{t("Language")}</Menu.Label> : null}
        {languages.length > 1
          ? languages.map((l) => (
              <Menu.Item
                key={l.code}
                lang={l.code}
                onClick={() => choose(l.code)}
                rightSection={language() === l.code ? "✓" : null}
              >
                {l.name}
              </Menu.Item>
            ))
          : null}
        <Menu.Divider />
        <Menu.Item onClick={() => void logout()}>{t("Log out")}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
