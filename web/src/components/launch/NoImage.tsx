import { Link } from "@tanstack/react-router";
import { administers, useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { Empty } from "../Note";

export function NoImage() {
  const admin = administers(useViewer());
  return (
    <Empty title={t("No images yet")} cli={admin ? "berth image scan" : undefined}>
      {admin ? (
        <span>
          {t("Add a registry and scan it")} <Link to="/admin/images">{t("Open Admin, Images")}</Link>.
        </span>
      ) : (
        <span>{t("An administrator must register an image first.")}</span>
      )}
    </Empty>
  );
}
