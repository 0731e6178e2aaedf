import { Link, Navigate, Outlet, useLocation } from "@tanstack/react-router";
import "../../components/admin/admin.css";
import { pagesOf } from "../../components/admin/nav";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { NotFoundInFrame } from "../NotFound";

/** The admin pages with their navigation. A page that the viewer has no permission for is "not found". */
export function Admin() {
  const shown = pagesOf(useViewer());
  const { pathname } = useLocation();
  const at = pathname.replace(/\/+$/, "");
  const pages = shown.flatMap((g) => g.pages);
  if (pages.length === 0) return <NotFoundInFrame />;
  if (at === "/admin") return <Navigate to={pages[0]!.to} replace />;
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
        {pages.some((p) => at === p.to || at.startsWith(`${p.to}/`)) ? <Outlet /> : <NotFoundInFrame />}
      </div>
    </div>
  );
}
