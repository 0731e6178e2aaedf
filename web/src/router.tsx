import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { hasInvitation, keepInvitation, session } from "./api/auth";
import { peopleOf } from "./components/admin/people/filter";
import { filterOf } from "./components/admin/rules/trail";
import { foldersOf } from "./components/folder/filter";
import { Frame } from "./components/frame/Frame";
import { Home } from "./pages/Home";
import { Login } from "./pages/Login";
import { Broken, NotFound } from "./pages/NotFound";
import { Sessions } from "./pages/Sessions";

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);

const root = createRootRoute({ notFoundComponent: NotFound, errorComponent: Broken });

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  component: Login,
  validateSearch: (search): { next?: string; error?: string; request?: string } => ({
    next: text(search.next),
    error: text(search.error),
    request: text(search.request),
  }),
});

const signup = createRoute({
  getParentRoute: () => root,
  path: "/signup",
  component: lazyRouteComponent(() => import("./pages/Signup"), "Signup"),
  // Remove the secret from the address bar and the history before anything is rendered.
  beforeLoad: ({ location }) => {
    if (keepInvitation(location.hash)) throw redirect({ to: "/signup", replace: true });
    return { invited: hasInvitation() };
  },
});

/** Lets visitors with a complete login pass, and sends others to the login page, which sends them back. */
async function known({ location }: { location: { pathname: string; href: string } }) {
  const login = await session();
  if (login && !login.due) return;
  throw redirect({ to: "/login", search: location.pathname === "/" ? {} : { next: location.href } });
}

const deviceLogin = createRoute({
  getParentRoute: () => root,
  path: "/device",
  component: lazyRouteComponent(() => import("./pages/DeviceLogin"), "DeviceLogin"),
  validateSearch: (search): { code?: string } => ({ code: text(search.code) }),
  beforeLoad: known,
});

const frame = createRoute({ getParentRoute: () => root, id: "frame", component: Frame, beforeLoad: known });

const home = createRoute({ getParentRoute: () => frame, path: "/", component: Home });

const sessions = createRoute({
  getParentRoute: () => frame,
  path: "/sessions",
  component: Sessions,
  validateSearch: (search): { show?: string; q?: string; all?: boolean; tag?: string; array?: string } => ({
    show: text(search.show),
    q: text(search.q),
    tag: text(search.tag),
    array: text(search.array),
    all: search.all === true || undefined,
  }),
});

const templates = createRoute({
  getParentRoute: () => frame,
  path: "/templates",
  component: lazyRouteComponent(() => import("./pages/Templates"), "Templates"),
});

const oneSession = createRoute({
  getParentRoute: () => frame,
  path: "/sessions/$id",
  component: lazyRouteComponent(() => import("./pages/Session"), "Session"),
  validateSearch: (search): { tab?: string; path?: string } => ({ tab: text(search.tab), path: text(search.path) }),
});

const serving = createRoute({
  getParentRoute: () => frame,
  path: "/serving",
  component: lazyRouteComponent(() => import("./pages/Serving"), "Serving"),
  validateSearch: (search): { q?: string; all?: boolean; ended?: boolean } => ({
    q: text(search.q),
    all: search.all === true || undefined,
    ended: search.ended === true || undefined,
  }),
});

const deployment = createRoute({
  getParentRoute: () => frame,
  path: "/serving/$id",
  component: lazyRouteComponent(() => import("./pages/Deployment"), "Deployment"),
  validateSearch: (search): { tab?: string } => ({ tab: text(search.tab) }),
});

const chatList = createRoute({
  getParentRoute: () => frame,
  path: "/chat",
  component: lazyRouteComponent(() => import("./pages/Chat"), "NewChatPage"),
  validateSearch: (search): { models?: string; prompt?: string } => ({
    models: text(search.models),
    // A prompt such as 42 is parsed as a number.
    prompt: search.prompt === undefined ? undefined : text(String(search.prompt)),
  }),
});

const chat = createRoute({
  getParentRoute: () => frame,
  path: "/chat/$id",
  component: lazyRouteComponent(() => import("./pages/Chat"), "ChatPage"),
});

const queue = createRoute({
  getParentRoute: () => frame,
  path: "/queue",
  component: lazyRouteComponent(() => import("./pages/Queue"), "Queue"),
  validateSearch: (search): { group?: string } => ({ group: text(search.group) }),
});

const data = createRoute({
  getParentRoute: () => frame,
  path: "/data",
  component: lazyRouteComponent(() => import("./pages/Data"), "Data"),
  validateSearch: foldersOf,
});

const folder = createRoute({
  getParentRoute: () => frame,
  path: "/data/$id",
  component: lazyRouteComponent(() => import("./pages/Folder"), "Folder"),
  validateSearch: (search): { path?: string } => ({ path: text(search.path) }),
});

const objectStorages = createRoute({
  getParentRoute: () => frame,
  path: "/object-storages",
  component: lazyRouteComponent(() => import("./pages/ObjectStorages"), "ObjectStorages"),
});

const cluster = createRoute({
  getParentRoute: () => frame,
  path: "/cluster",
  component: lazyRouteComponent(() => import("./pages/Cluster"), "Cluster"),
  validateSearch: (search): { view?: string } => ({ view: text(search.view) }),
});

const device = createRoute({
  getParentRoute: () => frame,
  path: "/cluster/devices/$id",
  component: lazyRouteComponent(() => import("./pages/Device"), "Device"),
});

const account = createRoute({
  getParentRoute: () => frame,
  path: "/account",
  component: lazyRouteComponent(() => import("./pages/account/Account"), "Account"),
});

const accountStart = createRoute({
  getParentRoute: () => account,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/account/profile" });
  },
});

const profile = createRoute({
  getParentRoute: () => account,
  path: "profile",
  component: lazyRouteComponent(() => import("./pages/account/Profile"), "Profile"),
});
const password = createRoute({
  getParentRoute: () => account,
  path: "password",
  component: lazyRouteComponent(() => import("./pages/account/Password"), "Password"),
});
const secondStep = createRoute({
  getParentRoute: () => account,
  path: "second-step",
  component: lazyRouteComponent(() => import("./pages/account/SecondStep"), "SecondStep"),
});
const logins = createRoute({
  getParentRoute: () => account,
  path: "logins",
  component: lazyRouteComponent(() => import("./pages/account/Logins"), "Logins"),
});
const tokens = createRoute({
  getParentRoute: () => account,
  path: "tokens",
  component: lazyRouteComponent(() => import("./pages/account/Tokens"), "Tokens"),
});
const keypairs = createRoute({
  getParentRoute: () => account,
  path: "keypairs",
  component: lazyRouteComponent(() => import("./pages/account/Keypairs"), "Keypairs"),
});
const sshKeys = createRoute({
  getParentRoute: () => account,
  path: "ssh-keys",
  component: lazyRouteComponent(() => import("./pages/account/SshKeys"), "SshKeys"),
});
const modelKeys = createRoute({
  getParentRoute: () => account,
  path: "model-keys",
  component: lazyRouteComponent(() => import("./pages/account/ModelKeys"), "ModelKeys"),
});
const ownImages = createRoute({
  getParentRoute: () => account,
  path: "images",
  component: lazyRouteComponent(() => import("./pages/account/Images"), "Images"),
});
const limits = createRoute({
  getParentRoute: () => account,
  path: "limits",
  component: lazyRouteComponent(() => import("./pages/account/Limits"), "Limits"),
});
const statistics = createRoute({
  getParentRoute: () => account,
  path: "statistics",
  component: lazyRouteComponent(() => import("./pages/account/Statistics"), "Statistics"),
  validateSearch: (search): { view?: string; period?: string } => ({
    view: text(search.view),
    period: text(search.period),
  }),
});
const usage = createRoute({
  getParentRoute: () => account,
  path: "usage",
  component: lazyRouteComponent(() => import("./pages/account/Usage"), "Usage"),
  validateSearch: (search): { by?: string; step?: string; period?: string } => ({
    by: text(search.by),
    step: text(search.step),
    period: text(search.period),
  }),
});
const accountNotices = createRoute({
  getParentRoute: () => account,
  path: "notices",
  component: lazyRouteComponent(() => import("./pages/account/Notices"), "Notices"),
});
const activity = createRoute({
  getParentRoute: () => account,
  path: "activity",
  component: lazyRouteComponent(() => import("./pages/account/Activity"), "Activity"),
});

const admin = createRoute({
  getParentRoute: () => frame,
  path: "/admin",
  component: lazyRouteComponent(() => import("./pages/admin/Admin"), "Admin"),
});

// Its component redirects to the first admin page that the viewer can open.
const adminStart = createRoute({ getParentRoute: () => admin, path: "/" });

const users = createRoute({
  getParentRoute: () => admin,
  path: "users",
  component: lazyRouteComponent(() => import("./pages/admin/Users"), "Users"),
  validateSearch: peopleOf,
});
const projects = createRoute({
  getParentRoute: () => admin,
  path: "projects",
  component: lazyRouteComponent(() => import("./pages/admin/Projects"), "Projects"),
  validateSearch: (search): { open?: string; domain?: string } => ({
    open: text(search.open),
    domain: text(search.domain),
  }),
});
const domains = createRoute({
  getParentRoute: () => admin,
  path: "domains",
  component: lazyRouteComponent(() => import("./pages/admin/Domains"), "Domains"),
  validateSearch: (search): { open?: string } => ({ open: text(search.open) }),
});
const invitations = createRoute({
  getParentRoute: () => admin,
  path: "invitations",
  component: lazyRouteComponent(() => import("./pages/admin/Invitations"), "Invitations"),
});
const providers = createRoute({
  getParentRoute: () => admin,
  path: "providers",
  component: lazyRouteComponent(() => import("./pages/admin/Providers"), "Providers"),
});
const tasks = createRoute({
  getParentRoute: () => admin,
  path: "tasks",
  component: lazyRouteComponent(() => import("./pages/admin/Tasks"), "Tasks"),
});
const policies = createRoute({
  getParentRoute: () => admin,
  path: "policies",
  component: lazyRouteComponent(() => import("./pages/admin/Policies"), "Policies"),
  validateSearch: (search): { view?: "who"; user?: string; project?: string; group?: string } => ({
    view: search.view === "who" ? "who" : undefined,
    user: text(search.user),
    project: text(search.project),
    group: text(search.group),
  }),
});
const resourceGroups = createRoute({
  getParentRoute: () => admin,
  path: "groups",
  component: lazyRouteComponent(() => import("./pages/admin/Groups"), "Groups"),
  validateSearch: (
    search,
  ): { view?: "who"; open?: string; of?: "user" | "project"; user?: string; project?: string } => ({
    view: search.view === "who" ? "who" : undefined,
    open: text(search.open),
    of: search.of === "user" || search.of === "project" ? search.of : undefined,
    user: text(search.user),
    project: text(search.project),
  }),
});
const idle = createRoute({
  getParentRoute: () => admin,
  path: "idle",
  component: lazyRouteComponent(() => import("./pages/admin/Idle"), "Idle"),
  validateSearch: (search): { open?: string } => ({ open: text(search.open) }),
});
const roles = createRoute({
  getParentRoute: () => admin,
  path: "roles",
  component: lazyRouteComponent(() => import("./pages/admin/Roles"), "Roles"),
});
const presets = createRoute({
  getParentRoute: () => admin,
  path: "presets",
  component: lazyRouteComponent(() => import("./pages/admin/Presets"), "Presets"),
});
const prices = createRoute({
  getParentRoute: () => admin,
  path: "prices",
  component: lazyRouteComponent(() => import("./pages/admin/Prices"), "Prices"),
});
const budgets = createRoute({
  getParentRoute: () => admin,
  path: "budgets",
  component: lazyRouteComponent(() => import("./pages/admin/Budgets"), "Budgets"),
});
const volumes = createRoute({
  getParentRoute: () => admin,
  path: "volumes",
  component: lazyRouteComponent(() => import("./pages/admin/Volumes"), "Volumes"),
});
const images = createRoute({
  getParentRoute: () => admin,
  path: "images",
  component: lazyRouteComponent(() => import("./pages/admin/Images"), "Images"),
});
const agents = createRoute({
  getParentRoute: () => admin,
  path: "agents",
  component: lazyRouteComponent(() => import("./pages/admin/Agents"), "Agents"),
});

const chatEndpoints = createRoute({
  getParentRoute: () => admin,
  path: "chat-endpoints",
  component: lazyRouteComponent(() => import("./pages/admin/ChatEndpoints"), "ChatEndpoints"),
});

const diagnostics = createRoute({
  getParentRoute: () => admin,
  path: "diagnostics",
  component: lazyRouteComponent(() => import("./pages/admin/Diagnostics"), "Diagnostics"),
});
const clusterNotices = createRoute({
  getParentRoute: () => admin,
  path: "notices",
  component: lazyRouteComponent(() => import("./pages/admin/Notices"), "ClusterNotices"),
});
const announcements = createRoute({
  getParentRoute: () => admin,
  path: "announcements",
  component: lazyRouteComponent(() => import("./pages/admin/Announcements"), "Announcements"),
});

const audit = createRoute({
  getParentRoute: () => admin,
  path: "audit",
  component: lazyRouteComponent(() => import("./pages/admin/Audit"), "Audit"),
  validateSearch: filterOf,
});
const retention = createRoute({
  getParentRoute: () => admin,
  path: "retention",
  component: lazyRouteComponent(() => import("./pages/admin/Retention"), "Retention"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    login,
    signup,
    deviceLogin,
    frame.addChildren([
      home,
      sessions,
      templates,
      oneSession,
      serving,
      deployment,
      chatList,
      chat,
      queue,
      data,
      folder,
      objectStorages,
      cluster,
      device,
      account.addChildren([
        accountStart,
        profile,
        password,
        secondStep,
        logins,
        tokens,
        keypairs,
        sshKeys,
        modelKeys,
        ownImages,
        limits,
        statistics,
        usage,
        accountNotices,
        activity,
      ]),
      admin.addChildren([
        adminStart,
        users,
        projects,
        domains,
        invitations,
        providers,
        tasks,
        policies,
        resourceGroups,
        idle,
        roles,
        presets,
        prices,
        budgets,
        volumes,
        images,
        agents,
        chatEndpoints,
        clusterNotices,
        announcements,
        audit,
        diagnostics,
        retention,
      ]),
    ]),
  ]),
  defaultPreload: "intent",
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
