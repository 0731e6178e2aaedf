import { graphql, type ResultOf } from "../../../api/graphql";

export const RegistryFields = graphql(
  `fragment RegistryFields on Registry {
    id name host plainHttp lastScannedAt proxy certificates repositories scanEvery tagPolicy lazyStart
    projects { id name } signatureKeys mirrors { host plainHttp login } webhook sweepable sweepEvery retention { prefix untaggedDays versions }
    lastSweep { at dryRun manifests blobs uploads freedBytes storedBytes freeBytes unclear unclearIn }
  }`,
);
export type Registry = ResultOf<typeof RegistryFields>;
