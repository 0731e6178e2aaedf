import { createContext, useContext } from "react";
import { graphql, type ResultOf } from "../api/graphql";

export const ViewerQuery = graphql(`
  query Viewer {
    viewer {
      initialPassword
      user {
        id email username fullName role occupied policies { id policy { id name totalSlots maxSessions } }
        domain { id name } memberships { id admin project { id } }
        roleGrants { id scope role { id allows { entity operations } } }
      }
      projects { id name type }
      resourceGroups { id name }
    }
    slotTypes { id name displayName unit icon }
  }
`);

export type Viewer = ResultOf<typeof ViewerQuery>["viewer"];

const Context = createContext<Viewer | null>(null);
export const ViewerProvider = Context.Provider;

/** Returns the logged-in user. The frame renders no page before they are known. */
export function useViewer(): Viewer {
  const viewer = useContext(Context);
  if (!viewer) throw new Error("no viewer above this component");
  return viewer;
}

export const administers = (viewer: Viewer) => viewer.user.role === "ADMIN" || viewer.user.role === "SUPERADMIN";
