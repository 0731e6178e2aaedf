import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { nodesOf } from "../admin/usePages";
import { acceleratorSlots, byRecent, type LaunchDraft } from "./request";

const LaunchImage = graphql(
  `fragment LaunchImage on Image { id name reference sizeBytes minimumSlots deprecated apps { name title } }`,
);
const LaunchQuery = graphql(
  `
  query Launch {
    images(first: 100, where: { status: ALIVE }, orderBy: [{ field: NAME, direction: ASC }]) {
      edges { node { ...LaunchImage } } totalCount
    }
    vfolders(first: 100, where: { status: READY }) {
      edges { node { id name permissions owner { id email } myShare { id status inviterEmail } } }
    }
    slotTypes { id name quantum allowedCounts }
    agents(first: 50) {
      edges { node { id name status schedulable devices { id allocatable health capacity occupied } } }
    }
  }
`,
  [LaunchImage],
);

const ImageSearch = graphql(
  `
  query LaunchImages($where: ImageWhereInput!) {
    images(first: 12, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
      edges { node { ...LaunchImage } } totalCount
    }
  }
`,
  [LaunchImage],
);

/** Searches all images by a part of their name; null without a text. */
export function useImageSearch(text: string) {
  const { data, failure } = useLiveQuery({
    query: ImageSearch,
    variables: { where: { status: "ALIVE", nameContainsFold: text } },
    pause: !text,
  });
  return text ? { images: nodesOf(data?.images), total: data?.images.totalCount, failure } : null;
}

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
export function useOffer(
  recent: readonly string[],
  { image, project, group }: Pick<LaunchDraft, "image" | "project" | "group">,
) {
  const { data, failure } = useLiveQuery({ query: LaunchQuery });
  const first = nodesOf(data?.images);
  // An image that was found by a search, or that a template names, is not always among the first.
  const chosen = useLiveQuery({
    query: ImageSearch,
    variables: { where: { status: "ALIVE", reference: image } },
    pause: !data || !image || first.some((i) => i.reference === image),
  });
  const more = nodesOf(chosen.data?.images).filter((i) => i.reference === image && !first.some((f) => f.id === i.id));
  const presets = useLiveQuery({ query: PresetsQuery, variables: { project, group } });
  const agents = nodesOf(data?.agents);
  return {
    loaded: Boolean(data),
    failure,
    images: byRecent([...first, ...more], recent),
    imageCount: data?.images.totalCount ?? 0,
    presets: nodesOf(presets.data?.resourcePresets),
    folders: nodesOf(data?.vfolders),
    agents,
    slots: acceleratorSlots(agents),
    typeOf: (slot: string) => data?.slotTypes.find((s) => s.name === slot),
  };
}

export type Offer = ReturnType<typeof useOffer>;
