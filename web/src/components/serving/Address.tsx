import { Tabs } from "@mantine/core";
import { t } from "../../i18n";
import { Copy } from "../Note";
import type { DeploymentDetail } from "./serving";
import { snippets } from "./tryout";

interface Props {
  deployment: DeploymentDetail;
  address: string | null;
}

/** Shows the address of a deployment, and programs that send a request to it. */
export function Address({ deployment: d, address }: Props) {
  return (
    <section className="panel pad stack" aria-label={t("Address")}>
      <h2>{t("Address")}</h2>
      {address ? (
        <>
          <div className="row tight">
            <code>{address}</code>
            <Copy value={address} label={t("Copy the address")} />
            <span className="dim">
              {t("model")} <code>{d.name}</code>
            </span>
          </div>
          <Tabs defaultValue="curl" variant="pills">
            <Tabs.List aria-label={t("Programs")}>
              {snippets(address, d.name, d.open).map((s) => (
                <Tabs.Tab key={s.name} value={s.name}>
                  {s.name}
                </Tabs.Tab>
              ))}
            </Tabs.List>
            {snippets(address, d.name, d.open).map((s) => (
              <Tabs.Panel key={s.name} value={s.name} className="stack tight" style={{ paddingTop: 8 }}>
                <pre className="code" tabIndex={0}>
                  {s.code}
                </pre>
                <div>
                  <Copy value={s.code} label={t("Copy the {{name}} program", { name: s.name })} />
                </div>
              </Tabs.Panel>
            ))}
          </Tabs>
          {d.open ? null : <p className="dim">{t("Create the key on the tab Keys.")}</p>}
        </>
      ) : (
        <p className="dim">
          {t("No gateway serves models, so the deployment has no address. An administrator can start one.")}
        </p>
      )}
    </section>
  );
}
