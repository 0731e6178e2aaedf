import { graphql } from "../../api/graphql";

/** All fields of a request, for saving it or launching it with changes. */
export const RequestParts = graphql(`
  fragment RequestParts on SessionRequest @_unmask {
    image type slots kernels command bootstrapScript environment
    apps { name title port command environment } mounts { vfolder target subpath readOnly } autoMount
    project resourceGroup priority lifetime agents strictAgents preemptible sessionGroup shmBytes diskBytes tags
  }
`);
