import { useMemo } from "react";
import { t } from "../../i18n";
import { readable } from "../../words";
import { MetricHistory } from "../history/MetricHistory";

const names: Record<string, string> = {
  request_rate: "Requests/s",
  requests: "In flight",
  waiting: "Waiting",
  error_share: "Errors",
  first_byte_p50: "First byte, p50",
  first_byte_p95: "First byte, p95",
  per_token_p50: "Per token, p50",
  per_token_p95: "Per token, p95",
  token_rate: "Tokens/s out",
  prompt_token_rate: "Tokens/s in",
  cached_share: "Prompt tokens from the cache",
  replicas: "Replicas that gateways know",
};
const order = Object.keys(names);

const nameOf = (metric: string) => t(names[metric] ?? readable(metric));
const place = (metric: string) => (order.includes(metric) ? order.indexOf(metric) : order.length);
const noLabel = () => "";

/** Shows the load of a deployment over time. */
export function LoadHistory({ id }: { id: string }) {
  const subjects = useMemo(() => [id], [id]);
  return <MetricHistory subjects={subjects} nameOf={nameOf} labelOf={noLabel} place={place} />;
}
