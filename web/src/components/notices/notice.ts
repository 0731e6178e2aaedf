import { graphql, type ResultOf } from "../../api/graphql";
import { t } from "../../i18n";

export const NoticesQuery = graphql(`
  query Notices($first: Int, $after: Cursor, $where: NoticeWhereInput) {
    notices(first: $first, after: $after, orderBy: [{ field: CREATED_AT, direction: DESC }], where: $where) {
      pageInfo { hasNextPage endCursor }
      edges { node { id kind severity parameters text count subjectID readAt createdAt } }
    }
    unreadNotices
  }
`);
export const UnreadQuery = graphql(`query Unread { unreadNotices }`);
export const NoticeAdded = graphql(`
  subscription NoticeAdded { noticeAdded { id kind parameters text count browser subjectID } }
`);
export const MarkRead = graphql(`
  mutation MarkNoticesRead($input: MarkNoticesReadInput!) { markNoticesRead(input: $input) { marked } }
`);
export const RunningTasksQuery = graphql(`
  query RunningTasks {
    tasks(first: 20, where: { statusIn: [WAITING, SCHEDULED, RUNNING] }, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      edges { node { id title kind status done total message } }
    }
  }
`);
export const NoticeSettingsQuery = graphql(`
  query NoticeSettings { noticeSettings { language mail kinds { kind severity forAdmins routes } } }
`);
export const SetSettings = graphql(`
  mutation SetNoticeSettings($input: SetNoticeSettingsInput!) {
    setNoticeSettings(input: $input) { settings { language mail kinds { kind severity forAdmins routes } } }
  }
`);
export const ChannelsQuery = graphql(`
  query NoticeChannels($cluster: Boolean) {
    noticeChannels(cluster: $cluster) { id type name host enabled disabledReason failingSince }
  }
`);
export const CreateChannel = graphql(`
  mutation CreateNoticeChannel($input: CreateNoticeChannelInput!) {
    createNoticeChannel(input: $input) { channel { id type name } secret }
  }
`);
export const UpdateChannel = graphql(`
  mutation UpdateNoticeChannel($input: UpdateNoticeChannelInput!) {
    updateNoticeChannel(input: $input) { channel { id name host enabled disabledReason failingSince } }
  }
`);
export const DeleteChannel = graphql(`
  mutation DeleteNoticeChannel($input: DeleteNoticeChannelInput!) { deleteNoticeChannel(input: $input) { id } }
`);
export const TestChannel = graphql(`
  mutation TestNoticeChannel($input: TestNoticeChannelInput!) { testNoticeChannel(input: $input) { delivered message } }
`);
export const DeliveriesQuery = graphql(`
  query NoticeDeliveries($cluster: Boolean, $first: Int, $after: Cursor, $where: NoticeDeliveryWhereInput) {
    noticeDeliveries(cluster: $cluster, first: $first, after: $after, orderBy: [{ field: CREATED_AT, direction: DESC }], where: $where) {
      totalCount
      pageInfo { hasNextPage endCursor }
      edges { node { id type kind status attempts message channelID createdAt sentAt } }
    }
  }
`);
export const Resend = graphql(`
  mutation ResendNoticeDelivery($input: ResendNoticeDeliveryInput!) {
    resendNoticeDelivery(input: $input) { delivery { id status attempts message } }
  }
`);

/** The rows of a list in pages. */
type Row<Connection extends { edges: ({ node: unknown } | null)[] | null }> = NonNullable<
  NonNullable<NonNullable<Connection["edges"]>[number]>["node"]
>;
export type Notice = Row<ResultOf<typeof NoticesQuery>["notices"]>;
export type Settings = ResultOf<typeof NoticeSettingsQuery>["noticeSettings"];
export type Kind = Notice["kind"];
export type Route = Settings["kinds"][number]["routes"][number];
export type Channel = ResultOf<typeof ChannelsQuery>["noticeChannels"][number];
export type Delivery = Row<ResultOf<typeof DeliveriesQuery>["noticeDeliveries"]>;

/** The text of each kind: about one event and about several. The server has the same for mails. */
const texts: Record<Kind, [string, string?]> = {
  SESSION_STARTED: ["Session {{name}} has started.", "{{count}} sessions have started, among them {{name}}."],
  SESSION_ENDED: ["Session {{name}} has ended: {{reason}}.", "{{count}} sessions have ended, among them {{name}}."],
  SESSION_FAILED: [
    "Session {{name}} has failed: {{reason}}.",
    "{{count}} sessions have failed, among them {{name}}: {{reason}}.",
  ],
  SESSION_IDLE: [
    "Session {{name}} ends soon because it is idle: {{reason}}.",
    "{{count}} sessions end soon because they are idle, among them {{name}}.",
  ],
  SESSION_LIFETIME: ["Session {{name}} ends soon: {{reason}}.", "{{count}} sessions end soon, among them {{name}}."],
  FOLDER_SHARED: [
    "{{by}} has invited you to the folder {{name}}.",
    "You were invited to {{count}} folders, among them {{name}}.",
  ],
  QUOTA: ["{{percent}} % of the storage quota on {{name}} is used."],
  BUDGET: ["{{percent}} % of the budget {{name}} is used: {{spent}} of {{limit}}."],
  REPLICA_FAILED: [
    "A replica of deployment {{name}} has failed: {{reason}}.",
    "{{count}} replicas of deployments have failed, among them one of {{name}}: {{reason}}.",
  ],
  ROLLED_BACK: ["Deployment {{name}} went back to its earlier revision: {{reason}}."],
  BUILD_DONE: ["Image {{name}} was built.", "{{count}} images were built, among them {{name}}."],
  BUILD_FAILED: [
    "The build of image {{name}} has failed: {{reason}}.",
    "{{count}} builds of images have failed, among them that of {{name}}: {{reason}}.",
  ],
  CHANNEL_DISABLED: [
    "Channel {{name}} was disabled, because its deliveries have failed for {{days}} days: {{reason}}.",
  ],
  AGENT_LOST: ["Machine {{name}} does not answer.", "{{count}} machines do not answer, among them {{name}}."],
  AGENT_BACK: ["Machine {{name}} answers again.", "{{count}} machines answer again, among them {{name}}."],
  PLUGIN_DOWN: [
    "Plugin {{plugin}} on machine {{name}} does not run: {{reason}}.",
    "{{count}} plugins do not run, among them {{plugin}} on machine {{name}}.",
  ],
  STORAGE_DOWN: [
    "Storage proxy {{name}} does not answer.",
    "{{count}} storage proxies do not answer, among them {{name}}.",
  ],
  CERTIFICATE: ["The certificate of {{name}} expires on {{expires}}."],
  DEAD_LETTER: ["Deliveries of notices could not be sent within 24 hours: {{total}}."],
  TEST: ["This is a test of channel {{name}}."],
};

/** Returns the sentence of a notice. */
export function textOf({ kind, parameters, count }: Pick<Notice, "kind" | "parameters" | "count">): string {
  const [one, many] = texts[kind];
  const values = parameters as Record<string, string>;
  return t(count > 1 && many ? many : one, { ...values, ...(count > 1 && many ? { count } : {}) });
}

/** Returns the path of the page about a notice; the kind of the object is in its id. */
export function pathOf({ kind, subjectID }: Pick<Notice, "kind" | "subjectID">): string {
  switch (kind) {
    case "SESSION_STARTED":
    case "SESSION_ENDED":
    case "SESSION_FAILED":
    case "SESSION_IDLE":
    case "SESSION_LIFETIME":
      return subjectID ? `/sessions/${subjectID}` : "/sessions";
    case "FOLDER_SHARED":
    case "QUOTA":
      return "/data";
    case "REPLICA_FAILED":
    case "ROLLED_BACK":
      return subjectID ? `/serving/${subjectID}` : "/serving";
    case "BUILD_DONE":
    case "BUILD_FAILED":
      return "/account/images";
    case "BUDGET":
      return "/account/usage";
    case "AGENT_LOST":
    case "AGENT_BACK":
    case "PLUGIN_DOWN":
      return "/admin/agents";
    case "STORAGE_DOWN":
      return "/admin/volumes";
    case "DEAD_LETTER":
      return "/admin/notices";
  }
  return "/account/notices";
}

export const routes = ["PAGE", "BROWSER", "EMAIL", "WEBHOOK", "SLACK"] as const satisfies Route[];
