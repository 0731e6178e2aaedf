// Notices and announcements of the mock: what the pages about them need.
import { randomUUID } from "node:crypto";

const ago = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();
const notice = (kind, severity, minutes, parameters, more = {}) => ({
  __typename: "Notice",
  id: randomUUID(),
  kind,
  severity,
  parameters,
  text: "",
  count: 1,
  browser: false,
  subjectID: null,
  readAt: null,
  createdAt: ago(minutes),
  ...more,
});
const notices = [
  notice("SESSION_FAILED", "ERROR", 3, { name: "train-17", reason: "out of memory" }, { count: 9995 }),
  notice("QUOTA", "WARNING", 40, { name: "fast", percent: "87" }),
  notice("FOLDER_SHARED", "INFO", 90, { name: "data", by: "mina@example.org" }),
  notice("SESSION_ENDED", "INFO", 200, { name: "notebook", reason: "its command completed" }, { readAt: ago(100) }),
];
const kinds = {
  SESSION_STARTED: "INFO",
  SESSION_ENDED: "INFO",
  SESSION_FAILED: "ERROR",
  SESSION_IDLE: "WARNING",
  SESSION_LIFETIME: "WARNING",
  FOLDER_SHARED: "INFO",
  QUOTA: "WARNING",
  BUDGET: "WARNING",
  AGENT_LOST: "ERROR",
};
const settings = {
  language: "EN",
  mail: true,
  kinds: Object.entries(kinds).map(([kind, severity]) => ({
    kind,
    severity,
    forAdmins: kind === "AGENT_LOST",
    routes: ["PAGE", "EMAIL"],
  })),
};
const channels = [];
const deliveries = [
  {
    __typename: "NoticeDelivery",
    id: randomUUID(),
    type: "WEBHOOK",
    kind: "SESSION_FAILED",
    status: "DEAD",
    attempts: 151,
    message: "the receiver answered with status 503",
    channelID: null,
    createdAt: ago(1500),
    sentAt: null,
  },
];
const announcements = [];

export const root = (conn) => ({
  notices: (a) => conn(notices)({ ...a, where: undefined }),
  unreadNotices: () => notices.filter((n) => !n.readAt).length,
  noticeSettings: () => settings,
  noticeChannels: () => channels,
  noticeDeliveries: (a) => conn(deliveries)({ ...a, where: undefined }),
  announcements: (a) => conn(announcements)(a),
  currentAnnouncements: () => announcements.filter((a) => !a.hidden),
  noticeAdded: async function* () {
    await new Promise(() => {});
    yield {};
  },
  markNoticesRead: ({ input }) => {
    const marked = notices.filter((n) => !n.readAt && (!input.ids || input.ids.includes(n.id)));
    for (const n of marked) n.readAt = ago(0);
    return { marked: marked.length };
  },
  setNoticeSettings: ({ input }) => {
    if (input.language) settings.language = input.language;
    for (const change of input.kinds ?? [])
      Object.assign(settings.kinds.find((k) => k.kind === change.kind) ?? {}, { routes: change.routes ?? ["PAGE"] });
    return { settings };
  },
  createNoticeChannel: ({ input }) => {
    const { url, cluster, ...rest } = input;
    const channel = {
      __typename: "NoticeChannel",
      id: randomUUID(),
      host: new URL(url).host,
      cluster: Boolean(cluster),
      enabled: true,
      disabledReason: "",
      failingSince: null,
      createdAt: ago(0),
      ...rest,
    };
    channels.push(channel);
    return { channel, secret: input.type === "WEBHOOK" ? "whsec_EXAMPLE" : null };
  },
  updateNoticeChannel: ({ input }) => ({
    channel: Object.assign(
      channels.find((c) => c.id === input.id),
      { enabled: input.enabled },
    ),
  }),
  deleteNoticeChannel: ({ input }) => {
    channels.splice(
      channels.findIndex((c) => c.id === input.id),
      1,
    );
    return { id: input.id };
  },
  testNoticeChannel: () => ({ delivered: false, message: "connection refused" }),
  createAnnouncement: ({ input }) => {
    const announcement = {
      __typename: "Announcement",
      id: randomUUID(),
      severity: "INFO",
      audience: "EVERYONE",
      scopeID: null,
      dismissable: true,
      startsAt: ago(0),
      endsAt: null,
      createdAt: ago(0),
      ...input,
    };
    announcements.push(announcement);
    return { announcement };
  },
  deleteAnnouncement: ({ input }) => {
    announcements.splice(
      announcements.findIndex((a) => a.id === input.id),
      1,
    );
    return { id: input.id };
  },
  dismissAnnouncement: ({ input }) => {
    announcements.find((a) => a.id === input.id).hidden = true;
    return { id: input.id };
  },
});
