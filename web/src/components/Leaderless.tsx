import { useEffect } from "react";
import { graphql } from "../api/graphql";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { t } from "../i18n";

const LedQuery = graphql(`query Led { cluster { led recovery { since } } }`);

/** No event says that the leader is gone: nobody is left to send one. */
const every = 15_000;

/** Says why nothing on the page moves: no manager leads, or the cluster is in recovery mode. */
export function Leaderless() {
  const { data, refetch } = useLiveQuery({ query: LedQuery });
  useEffect(() => {
    const timer = setInterval(refetch, every);
    return () => clearInterval(timer);
  }, [refetch]);
  if (!data) return null;
  if (data.cluster.led && data.cluster.recovery) {
    return (
      <div className="failure" role="alert">
        <b>{t("The cluster is in recovery mode.")}</b> {t("No session starts, and nothing ends by itself, until an administrator turns the mode off.")}
      </div>
    );
  }
  if (data.cluster.led) return null;
  return (
    <div className="failure" role="alert">
      <b>{t("No manager leads the cluster.")}</b> {t("No session starts, ends or moves until one does.")}
    </div>
  );
}
