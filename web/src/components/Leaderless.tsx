import { useEffect } from "react";
import { graphql } from "../api/graphql";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { t } from "../i18n";

const LedQuery = graphql(`query Led { cluster { led } }`);

/** No event says that the leader is gone: nobody is left to send one. */
const every = 15_000;

/** Says that no manager leads, which is why nothing on the page moves. */
export function Leaderless() {
  const { data, refetch } = useLiveQuery({ query: LedQuery });
  useEffect(() => {
    const timer = setInterval(refetch, every);
    return () => clearInterval(timer);
  });
  if (!data || data.cluster.led) return null;
  return (
    <div className="failure" role="alert">
      <b>{t("No manager leads the cluster.")}</b> {t("No session starts, ends or moves until one does.")}
    </div>
  );
}
