import { graphql, type ResultOf, type VariablesOf } from "../../api/graphql";

export const AppFields = graphql(`
  fragment AppFields on App {
    name title kernelId port source status reason startable address lastUsedAt
    sharing { id audience networks expiresAt }
  }
`);
export type App = ResultOf<typeof AppFields>;

export const AppsQuery = graphql(
  `
  query Apps($session: ID!, $kernel: ID) {
    node(id: $session) { ... on Session { id apps(kernel: $kernel) { ...AppFields } } }
  }
`,
  [AppFields],
);

export const appsOf = (data: ResultOf<typeof AppsQuery> | undefined): readonly App[] | null =>
  data ? (data.node && "apps" in data.node ? data.node.apps : []) : null;

export const OpenApp = graphql(`
  mutation OpenApp($input: OpenAppInput!) { openApp(input: $input) { url address } }
`);
export type OpenInput = VariablesOf<typeof OpenApp>["input"];

export const RestartApp = graphql(
  `mutation RestartApp($input: AppActionInput!) { restartApp(input: $input) { app { ...AppFields } } }`,
  [AppFields],
);
export const StopApp = graphql(
  `mutation StopApp($input: AppActionInput!) { stopApp(input: $input) { app { ...AppFields } } }`,
  [AppFields],
);

/** Reports whether the app can be opened: it runs, or it can be started. */
export const openable = (app: Pick<App, "status" | "startable">) =>
  app.startable || app.status === "RUNNING" || app.status === "STARTING";
