import type { Viewer } from "../../../hooks/useViewer";
import { seesDomain } from "../nav";

/** A grant as far as it says to whom it is. */
interface Grant {
  everybody: boolean;
  domain: { id: string } | null;
  project: { id: string } | null;
  user: { id: string } | null;
}

/** The grant of one holder, and the one for everybody. */
export const grantsTo = <G extends Grant>(
  grants: readonly G[],
  holder: { kind: "domain" | "project" | "user"; id: string },
) => ({
  own: grants.find((g) => g[holder.kind]?.id === holder.id) ?? null,
  everybody: grants.find((g) => g.everybody) ?? null,
});

/** Whether the server lists who uses a volume. */
export const seesVolumes = (viewer: Viewer) => seesDomain(viewer);
