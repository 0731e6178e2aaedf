import { Link } from "@tanstack/react-router";
import { administers, useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { Empty } from "../Note";

export function NoImage() {
  const admin = administers(useViewer());
  return (
    <Empty title={t("There is no image yet")} cli={admin ? "berth image scan" : undefined}>
      {admin ? (
        <span>
          {t("Add a registry and scan it in")} <Link to="/admin/images">{t("Admin, Images")}</Link>.
        </span>
      ) : (
        <span>{t("An administrator has to register one first.")}</span>
      )}
    </Empty>
  );
}
