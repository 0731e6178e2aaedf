import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { nodesOf } from "../admin/usePages";
import { acceleratorSlots, byRecent, type LaunchDraft } from "./request";

const LaunchQuery = graphql(`
  query Launch {
    images(first: 100, where: { status: ALIVE }, orderBy: [{ field: NAME, direction: ASC }]) {
      edges { node { id name reference sizeBytes minimumSlots deprecated apps { name title } } }
    }
    vfolders(first: 100, where: { status: READY }) {
      edges { node { id name permissions owner { id email } myShare { id status inviterEmail } } }
    }
    slotTypes { id name quantum allowedCounts }
    agents(first: 50) {
      edges { node { id name status schedulable devices { id allocatable health capacity occupied } } }
    }
  }
`);

const PresetsQuery = graphql(`
  query LaunchPresets($project: ID, $group: ID) {
    resourcePresets(resourceGroup: $group, first: 100, orderBy: [{ field: NAME }]) {
      edges { node {
        id name description slots shmBytes fit(project: $project, resourceGroup: $group) { state reason }
      } }
    }
  }
`);

/** Loads the choices for a session: images, the recent ones first, presets, folders, agents and accelerators. */
export function useOffer(recent: readonly string[], { project, group }: Pick<LaunchDraft, "project" | "group">) {
  const { data, failure } = useLiveQuery({ query: LaunchQuery });
  const presets = useLiveQuery({ query: PresetsQuery, variables: { project, group } });
  const agents = nodesOf(data?.agents);
  return {
    loaded: Boolean(data),
    failure,
    images: byRecent(nodesOf(data?.images), recent),
    presets: nodesOf(presets.data?.resourcePresets),
    folders: nodesOf(data?.vfolders),
    agents,
    slots: acceleratorSlots(agents),
    typeOf: (slot: string) => data?.slotTypes.find((s) => s.name === slot),
  };
}

export type Offer = ReturnType<typeof useOffer>;
