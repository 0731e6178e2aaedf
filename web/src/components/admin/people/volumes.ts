import type { Viewer } from "../../../hooks/useViewer";
import { canReadDomain } from "../nav";

/** The holder of a grant. */
interface Grant {
  everybody: boolean;
  domain: { id: string } | null;
  project: { id: string } | null;
  user: { id: string } | null;
}

/** Returns the grant of one holder, and the grant for everyone. */
export const grantsTo = <G extends Grant>(
  grants: readonly G[],
  holder: { kind: "domain" | "project" | "user"; id: string },
) => ({
  own: grants.find((g) => g[holder.kind]?.id === holder.id) ?? null,
  everybody: grants.find((g) => g.everybody) ?? null,
});

/** Reports whether the server lists the users of a volume to the viewer. */
export const canListVolumeUsers = (viewer: Viewer) => canReadDomain(viewer);
