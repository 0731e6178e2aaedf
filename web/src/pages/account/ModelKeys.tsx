import { Keys } from "../../components/serving/Keys";
import "../../components/serving/serving.css";
import { t } from "../../i18n";

/** The viewer's keys for all deployments that they can see. */
export function ModelKeys() {
  return (
    <>
      <div className="page-head">
        <h1>{t("Keys for models")}</h1>
        <span className="dim">{t("for programs that send requests to deployments")}</span>
      </div>
      <Keys deployment={null} />
    </>
  );
}
