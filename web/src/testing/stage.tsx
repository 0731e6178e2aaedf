import { MantineProvider } from "@mantine/core";
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  Outlet,
  RouterProvider,
} from "@tanstack/react-router";
import { render } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactNode } from "react";
import { Provider } from "urql";
import { Toasts } from "../components/frame/Toasts";
import { type Viewer, ViewerProvider } from "../hooks/useViewer";
import { theme } from "../theme";
import { type Answers, FakeApi } from "./api";

const ada: Viewer = {
  initialPassword: false,
  user: {
    id: "ada",
    email: "ada@berth.example",
    username: "ada",
    fullName: "Ada Kim",
    role: "USER",
    occupied: {},
    policies: [],
    domain: { id: "d1", name: "default" },
    memberships: [],
    roleGrants: [],
  },
  projects: [{ id: "p1", name: "vision", type: "GENERAL" }],
  resourceGroups: [{ id: "g1", name: "default" }],
};

/** Returns the viewer of the tests with another role. */
export const viewerAs = (role: Viewer["user"]["role"]): Viewer => ({ ...ada, user: { ...ada.user, role } });

interface Options {
  answers?: Answers;
  viewer?: Viewer;
  /** The route of the component. */
  path?: string;
}

/** Renders a component as the page does: with a theme, a router, a viewer and an API. */
export async function stage(shown: ReactNode, { answers = {}, viewer = ada, path = "/" }: Options = {}) {
  const api = new FakeApi(answers);
  const root = createRootRoute({ component: Outlet });
  const frame = createRoute({ getParentRoute: () => root, id: "frame", component: Outlet });
  const own = createRoute({ getParentRoute: () => frame, path, component: () => <>{shown}</> });
  const other = createRoute({ getParentRoute: () => frame, path: "$", component: () => null });
  const router = createRouter({
    routeTree: root.addChildren([frame.addChildren(path === "$" ? [own] : [own, other])]),
    history: createMemoryHistory({ initialEntries: [path] }),
  });
  await router.load();
  const user = userEvent.setup();
  render(
    <MantineProvider theme={theme} env="test">
      <Provider value={api.client}>
        <ViewerProvider value={viewer}>
          <RouterProvider router={router as never} />
          <Toasts />
        </ViewerProvider>
      </Provider>
    </MantineProvider>,
  );
  return { api, user, router };
}
