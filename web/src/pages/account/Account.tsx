import { Link, Outlet } from "@tanstack/react-router";
import { pages } from "../../components/account/nav";
import { t } from "../../i18n";
import "../../components/account/account.css";

/** The account pages with their navigation. */
export function Account() {
  return (
    <div className="account">
      <nav className="subnav" aria-label={t("Account pages")}>
        {pages.map((p) => (
          <Link key={p.to} to={p.to} activeProps={{ className: "active", "aria-current": "page" }}>
            {t(p.label)}
          </Link>
        ))}
      </nav>
      <div>
        <Outlet />
      </div>
    </div>
  );
}
