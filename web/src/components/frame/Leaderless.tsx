import { useEffect } from "react";
import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";

const LedQuery = graphql(`query Led { cluster { led recovery { since } } }`);

/** The poll interval in milliseconds. A poll is needed because only the leader sends events, and it is missing. */
const pollInterval = 15_000;

/** Explains why nothing on the page changes: there is no leader, or the cluster is in recovery mode. */
export function Leaderless() {
  const { data, refetch } = useLiveQuery({ query: LedQuery });
  useEffect(() => {
    const timer = setInterval(refetch, pollInterval);
    return () => clearInterval(timer);
  }, [refetch]);
  if (!data) return null;
  if (data.cluster.led && data.cluster.recovery) {
    return (
      <div className="failure" role="alert">
        <b>{t("The cluster is in recovery mode.")}</b>{" "}
        {t("Until an administrator turns it off, no session starts, and Berth stops or removes nothing by itself.")}
      </div>
    );
  }
  if (data.cluster.led) return null;
  return (
    <div className="failure" role="alert">
      <b>{t("The cluster has no leader.")}</b>{" "}
      {t("Sessions cannot start, stop or move until a manager becomes the leader.")}
    </div>
  );
}
