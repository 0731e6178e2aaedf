import { Link, Outlet } from "@tanstack/react-router";
import { administers, useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const parts = [
  { to: "/admin/users", label: "Users" },
  { to: "/admin/projects", label: "Projects" },
  { to: "/admin/policies", label: "Policies" },
  { to: "/admin/images", label: "Images" },
  { to: "/admin/agents", label: "Agents" },
] as const;

export function Admin() {
  if (!administers(useViewer())) {
    return (
      <>
        <h1>{t("Admin")}</h1>
        <p>{t("These pages are for administrators.")}</p>
      </>
    );
  }
  return (
    <>
      <nav className="chips" aria-label={t("Admin pages")}>
        {parts.map((p) => (
          <Link key={p.to} to={p.to} className="chip" activeProps={{ "aria-current": "page", style: { borderColor: "var(--accent)", background: "var(--accent-soft)" } }}>
            {t(p.label)}
          </Link>
        ))}
      </nav>
      <Outlet />
    </>
  );
}
