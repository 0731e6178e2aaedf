import { useCurrency } from "../../hooks/useCurrency";
import { t } from "../../i18n";
import { when } from "../format";
import { type DeploymentDetail, measured, percent, rate } from "./serving";

/** Shows the load of the last minute and who can use a deployment. */
export function Facts({ deployment: d }: { deployment: DeploymentDetail }) {
  const l = d.load;
  const currency = useCurrency();
  const numbers: [name: string, value: string, title?: string][] = l
    ? [
        [t("Requests/s"), rate(l.requestsPerSecond)],
        [t("In flight"), String(l.inFlight)],
        [t("Waiting"), String(l.waiting), t("requests that wait for a replica")],
        [t("Errors"), percent(l.errorRate)],
        [t("First byte, p50 / p95"), `${measured(l.firstByteP50)} / ${measured(l.firstByteP95)}`],
        [t("Per token, p50 / p95"), `${measured(l.perTokenP50)} / ${measured(l.perTokenP95)}`],
        [t("Tokens/s in / out"), `${rate(l.promptTokensPerSecond)} / ${rate(l.completionTokensPerSecond)}`],
        [t("Prompt tokens from the cache"), percent(l.cachedShare)],
      ]
    : [];
  return (
    <section className="panel pad stack" aria-label={t("Load")}>
      <h2>{t("Load of the last minute")}</h2>
      {l ? (
        <dl className="numbers">
          {numbers.map(([name, value, title]) => (
            <div key={name} title={title}>
              <dt>{name}</dt>
              <dd className="figure">{value}</dd>
            </div>
          ))}
        </dl>
      ) : (
        <p className="dim">{t("No gateway reports the load.")}</p>
      )}
      {d.tokenPrices ? (
        <p>
          {t("1,000 tokens cost {{prices}} {{currency}}.", {
            prices: [
              d.tokenPrices.input ? t("{{amount}} in a prompt", { amount: d.tokenPrices.input }) : "",
              d.tokenPrices.cachedInput ? t("{{amount}} from the cache", { amount: d.tokenPrices.cachedInput }) : "",
              d.tokenPrices.output ? t("{{amount}} in an answer", { amount: d.tokenPrices.output }) : "",
            ]
              .filter(Boolean)
              .join(", "),
            currency,
          })}
        </p>
      ) : null}
      <p className="dim">
        {[
          d.shared
            ? t("Members of the project {{name}} can use it.", { name: d.project.name })
            : t("Only {{who}} can use it.", { who: d.owner.email }),
          d.open ? t("Requests need no key.") : "",
          d.recorded ? t("Requests and answers are recorded for the owner.") : "",
          d.lastRequestAt ? t("The last request was at {{time}}.", { time: when(d.lastRequestAt) }) : "",
        ]
          .filter(Boolean)
          .join(" ")}
      </p>
    </section>
  );
}
