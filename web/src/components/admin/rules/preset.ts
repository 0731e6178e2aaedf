import { graphql, type ResultOf } from "../../../api/graphql";

export const PresetFields = graphql(`
  fragment PresetFields on ResourcePreset { id name description slots shmBytes permissions resourceGroup { id name } }
`);
export type Preset = ResultOf<typeof PresetFields>;
