import { Link, useParams } from "@tanstack/react-router";
import { useSubscription } from "urql";
import { graphql, type ResultOf } from "../api/graphql";
import { DeviceFacts } from "../components/device/DeviceFacts";
import { DeviceHistory, DeviceMetrics } from "../components/device/DeviceMetrics";
import { iconOf } from "../components/device/FamilyBerths";
import { accelerators, problemText, stateOf } from "../components/device/fleet";
import { Glyph } from "../components/device/Glyph";
import { Holders } from "../components/device/Holders";
import { LinkMatrix } from "../components/device/LinkMatrix";
import { PluginNote } from "../components/device/PluginNote";
import { mainSlot } from "../components/device/segments";
import { FailureNote } from "../components/Note";
import { Status } from "../components/Status";
import { extend, type Series } from "../components/session/series";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { useSlotTypes } from "../hooks/useSlotTypes";
import { t } from "../i18n";
import { slotName } from "../slots";
import { NotFound } from "./NotFound";

// The fields of a device that change while its page is open.
const DeviceNow = graphql(`
  fragment DeviceNow on Device {
    id health healthMessage allocatable rejectReasons capacity occupied
    holders { slot amount since mine session { id name } }
  }
`);

const DeviceQuery = graphql(
  `
  query Device($id: ID!) {
    node(id: $id) {
      id
      ... on Device {
        ...DeviceNow
        deviceId plugin vendor model pciAddress pcieRoot numaNode memoryBytes processingUnits groups
        enforcement attributes
        parent { id deviceId } partitions { id deviceId }
        counters { set name amount total }
        agent {
          id name status resourceGroup { id name }
          plugins { name version state message restarts checks { name level text } }
          links { a b type distance gbps p2p }
          devices {
            id deviceId plugin vendor pciAddress capacity health healthMessage allocatable rejectReasons parent { id }
          }
        }
      }
    }
  }
`,
  [DeviceNow],
);

const DeviceChanged = graphql(
  `
  subscription DeviceChanged($agent: ID!) {
    agentChanged(id: $agent) {
      id status statsAt
      plugins { name version state message restarts checks { name level text } }
      stats { name deviceId value capacity unit quality }
      devices { ...DeviceNow }
    }
  }
`,
  [DeviceNow],
);

type Found = Extract<NonNullable<ResultOf<typeof DeviceQuery>["node"]>, { deviceId: string }>;

/** Shows one device: its properties, its state, the sessions that use it, and its links. */
export function Device() {
  const { id } = useParams({ from: "/frame/cluster/devices/$id" });
  const { data, failure } = useLiveQuery({ query: DeviceQuery, variables: { id } });
  const device = data?.node as Found | null | undefined;
  if (data && !device?.deviceId) return <NotFound />;
  if (!device) {
    return (
      <>
        <h1>{t("Device")}</h1>
        <FailureNote failure={failure} what={t("The device could not be loaded")} />
      </>
    );
  }
  return <Detail key={id} device={device} failure={failure} />;
}

type Samples = { latest: ResultOf<typeof DeviceChanged>["agentChanged"]["stats"]; series: Series[] };

function Detail({ device, failure }: { device: Found; failure: ReturnType<typeof useLiveQuery>["failure"] }) {
  const types = useSlotTypes();
  const { agent } = device;
  const [{ data: samples }] = useSubscription(
    { query: DeviceChanged, variables: { agent: agent.id } },
    (known: Samples | undefined, { agentChanged: now }): Samples => {
      const latest = now.stats.filter((m) => m.deviceId === device.deviceId);
      return {
        latest,
        series: extend(known?.series ?? [], "", Date.parse(now.statsAt ?? new Date().toISOString()), latest),
      };
    },
  );
  const state = stateOf(device, device.partitions.length > 0);
  const reason = problemText(device);
  const plugin = agent.plugins.find((p) => p.name === device.plugin);
  return (
    <>
      <nav aria-label={t("Breadcrumb")}>
        <ol className="crumbs">
          <li>
            <Link to="/cluster">{t("Cluster")}</Link> /
          </li>
          <li>
            {agent.name} <span className="dim">({agent.resourceGroup.name})</span>
          </li>
          {device.parent ? (
            <li>
              /{" "}
              <Link to="/cluster/devices/$id" params={{ id: device.parent.id }}>
                {device.parent.deviceId}
              </Link>
            </li>
          ) : null}
        </ol>
      </nav>
      <div className="page-head">
        {device.plugin ? <Glyph icon={iconOf(device.plugin, Object.keys(device.capacity), types)} size={30} /> : null}
        <h1>{device.model || slotName(mainSlot(device.capacity))}</h1>
        <Status status={state} pill />
        {agent.status === "ALIVE" ? null : <Status status={agent.status} pill />}
        <code className="push dim clip">{device.deviceId}</code>
      </div>
      <FailureNote failure={failure} what={t("The device could not be loaded")} />
      {reason ? <p className={`panel pad${state === "cut" ? "" : " warned"}`}>{reason}</p> : null}
      <div className="columns">
        <div className="stack">
          <Section title={t("Current metrics")}>
            <DeviceMetrics plugin={device.plugin} latest={samples?.latest ?? []} series={samples?.series ?? []} />
          </Section>
          <Section title={t("History")}>
            <DeviceHistory plugin={device.plugin} agent={agent.id} device={device.deviceId} />
          </Section>
          <Section title={t("Used by")}>
            <Holders device={device} />
          </Section>
          {device.plugin ? (
            <Section title={t("Links")}>
              <LinkMatrix
                here={device.deviceId}
                links={agent.links}
                devices={accelerators(agent.devices).filter((d) => d.plugin === device.plugin)}
              />
            </Section>
          ) : null}
        </div>
        <div className="stack">
          <Section title={t("Details")}>
            <DeviceFacts device={device} />
          </Section>
          {plugin ? (
            <Section title={t("Plugin")}>
              <PluginNote plugin={plugin} />
            </Section>
          ) : null}
        </div>
      </div>
    </>
  );
}

function Section({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <section className="panel pad stack small" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}
