import { isSuper } from "../../components/admin/nav";
import { ChannelList } from "../../components/notices/ChannelList";
import { Deliveries } from "../../components/notices/Deliveries";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

/** The channels that get the notices for administrators, and what was sent through them. */
export function ClusterNotices() {
  const can = isSuper(useViewer());
  return (
    <>
      <div className="page-head">
        <h1>{t("Notices of the cluster")}</h1>
        <span className="dim">{t("Lost machines, plugins, storage proxies, certificates and dead letters")}</span>
      </div>
      <ChannelList cluster can={can} />
      <Deliveries cluster can={can} />
    </>
  );
}
