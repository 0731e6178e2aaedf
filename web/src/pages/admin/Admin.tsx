import { Link, Outlet } from "@tanstack/react-router";
import "../../components/admin/admin.css";
import { groups, seesSome } from "../../components/admin/nav";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

export function Admin() {
  const viewer = useViewer();
  if (!seesSome(viewer)) {
    return (
      <>
        <h1>{t("Admin")}</h1>
        <p>{t("These pages are for administrators.")}</p>
      </>
    );
  }
  const shown = groups.map((g) => ({ ...g, pages: g.pages.filter((p) => p.for(viewer)) })).filter((g) => g.pages.length > 0);
  return (
    <div className="admin">
      <nav className="admin-nav" aria-label={t("Admin pages")}>
        {shown.map((g) => (
          <section key={g.label} aria-label={t(g.label)}>
            <h2 aria-hidden="true">{t(g.label)}</h2>
            <ul>
              {g.pages.map((p) => (
                <li key={p.to}>
                  <Link to={p.to} activeProps={{ "aria-current": "page" }}>
                    {t(p.label)}
                  </Link>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </nav>
      <div className="content">
        <Outlet />
      </div>
    </div>
  );
}
