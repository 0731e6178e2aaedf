import { Button, Tabs } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { useSubscription } from "urql";
import { TallyTable } from "../components/chat/TallyTable";
import { FailureNote } from "../components/Note";
import { Status } from "../components/Status";
import { Address } from "../components/serving/Address";
import { Change } from "../components/serving/Change";
import { Facts } from "../components/serving/Facts";
import { History } from "../components/serving/History";
import { Keys } from "../components/serving/Keys";
import { LoadHistory } from "../components/serving/LoadHistory";
import { Records } from "../components/serving/Records";
import { Remove } from "../components/serving/Remove";
import { Replicas } from "../components/serving/Replicas";
import { Revisions } from "../components/serving/Revisions";
import { ScalingForm } from "../components/serving/ScalingForm";
import { SettingsForm } from "../components/serving/SettingsForm";
import { StrategyForm } from "../components/serving/StrategyForm";
import { DeploymentChanged, type DeploymentDetail, DeploymentQuery } from "../components/serving/serving";
import { TryOut } from "../components/serving/TryOut";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { useViewer } from "../hooks/useViewer";
import { t } from "../i18n";
import { NotFound } from "./NotFound";
import "../components/serving/serving.css";

const DeploySheet = lazy(() => import("../components/serving/DeploySheet"));

export function Deployment() {
  const { id } = useParams({ from: "/frame/serving/$id" });
  const { data, failure, refetch } = useLiveQuery({ query: DeploymentQuery, variables: { id } });
  useSubscription({ query: DeploymentChanged, variables: { id } });
  const deployment = data?.node as DeploymentDetail | null | undefined;
  if (data && !deployment?.name) return <NotFound />;
  if (!deployment) {
    return (
      <>
        <h1>{t("Deployment")}</h1>
        <FailureNote failure={failure} />
      </>
    );
  }
  return (
    <>
      <FailureNote failure={failure} what={t("The numbers below are not current")} />
      <Detail key={id} deployment={deployment} address={data?.modelsURL ?? null} refetch={refetch} />
    </>
  );
}

interface Props {
  deployment: DeploymentDetail;
  address: string | null;
  refetch: () => void;
}

function Detail({ deployment: d, address, refetch }: Props) {
  const search = useSearch({ from: "/frame/serving/$id" });
  const navigate = useNavigate({ from: "/serving/$id" });
  const [deleting, remove] = useDisclosure(false);
  const [revising, revise] = useDisclosure(false);
  const mine = useViewer().user.id === d.owner.id;
  const over = d.status === "ENDED" || d.status === "ENDING";
  const can = (what: "UPDATE" | "DELETE") => d.permissions.includes(what) && !over;
  return (
    <>
      <div className="page-head">
        <h1>{d.name}</h1>
        <Status status={d.status} pill />
        <span className="dim">
          {t("{{ready}} of {{wanted}} replicas ready", { ready: d.ready.totalCount, wanted: d.wanted })}
        </span>
        <div className="push row">
          {over ? null : (
            <Button
              variant="default"
              renderRoot={(props) => <Link to="/chat" search={{ models: d.name }} {...props} />}
              aria-label={t("Chat with {{name}}", { name: d.name })}
            >
              {t("Chat")}
            </Button>
          )}
          {can("UPDATE") ? (
            <Button variant="default" onClick={revise.open}>
              {t("New revision")}
            </Button>
          ) : null}
          {can("DELETE") ? (
            <Button variant="outline" color="red" onClick={remove.open}>
              {t("Delete")}
            </Button>
          ) : null}
        </div>
      </div>
      {d.description ? <p className="dim">{d.description}</p> : null}
      {d.message ? (
        <div className={d.status === "DEGRADED" ? "failure sentence" : "panel pad sentence"} role="status">
          {d.message}
        </div>
      ) : null}
      <Tabs
        value={search.tab ?? "overview"}
        keepMounted={false}
        onChange={(tab) => void navigate({ search: { tab: tab ?? undefined }, replace: true })}
      >
        <Tabs.List aria-label={t("Deployment tabs")}>
          <Tabs.Tab value="overview">{t("Overview")}</Tabs.Tab>
          <Tabs.Tab value="load">{t("Load")}</Tabs.Tab>
          <Tabs.Tab value="try">{t("Try it")}</Tabs.Tab>
          <Tabs.Tab value="keys">{t("Keys")}</Tabs.Tab>
          <Tabs.Tab value="revisions">{t("Revisions")}</Tabs.Tab>
          <Tabs.Tab value="scaling">{t("Scaling")}</Tabs.Tab>
          <Tabs.Tab value="settings">{t("Settings")}</Tabs.Tab>
          {mine ? <Tabs.Tab value="requests">{t("Requests")}</Tabs.Tab> : null}
          <Tabs.Tab value="history">{t("History")}</Tabs.Tab>
        </Tabs.List>
        <div style={{ paddingTop: 12 }}>
          <Tabs.Panel value="overview" className="stack">
            <Change deployment={d} editable={can("UPDATE")} />
            <Facts deployment={d} />
            <Replicas deployment={d} />
            {over ? null : <Address deployment={d} address={address} />}
            <section className="panel pad stack small" aria-label={t("Votes of chats")}>
              <h2>{t("Votes of chats")}</h2>
              <TallyTable deployment={d.id} />
            </section>
          </Tabs.Panel>
          <Tabs.Panel value="load">
            <LoadHistory id={d.id} />
          </Tabs.Panel>
          <Tabs.Panel value="try">
            <TryOut deployment={d} address={address} over={over} />
          </Tabs.Panel>
          <Tabs.Panel value="keys">
            <Keys deployment={d} over={over} />
          </Tabs.Panel>
          <Tabs.Panel value="revisions">
            <Revisions deployment={d} editable={can("UPDATE")} />
          </Tabs.Panel>
          <Tabs.Panel value="scaling">
            <ScalingForm deployment={d} editable={can("UPDATE")} />
          </Tabs.Panel>
          <Tabs.Panel value="settings" className="stack">
            <StrategyForm deployment={d} editable={can("UPDATE")} />
            <SettingsForm deployment={d} editable={can("UPDATE")} />
          </Tabs.Panel>
          {mine ? (
            <Tabs.Panel value="requests">
              <Records deployment={d} />
            </Tabs.Panel>
          ) : null}
          <Tabs.Panel value="history">
            <History id={d.id} />
          </Tabs.Panel>
        </div>
      </Tabs>
      {deleting ? <Remove deployment={d} onClose={remove.close} /> : null}
      {revising ? (
        <Suspense fallback={null}>
          <DeploySheet
            deployment={d}
            onClose={() => {
              revise.close();
              refetch();
            }}
          />
        </Suspense>
      ) : null}
    </>
  );
}
