import { graphql, type ResultOf } from "../../api/graphql";

export const ModelParts = graphql(`
  fragment ModelParts on ChatModel @_unmask {
    name revision deployment { id name status recorded } endpoint { id name enabled }
  }
`);

export const ParameterParts = graphql(`
  fragment ParameterParts on ChatParameters @_unmask {
    system temperature topP maxTokens presencePenalty frequencyPenalty seed stop schema
  }
`);

export const AnswerParts = graphql(
  `
  fragment AnswerParts on ChatAnswer @_unmask {
    id turn column previous status message text reasoning revision createdAt endedAt
    model { ...ModelParts }
    parameters { ...ParameterParts }
    session { id name }
    cost
    metrics { firstToken duration waited promptTokens completionTokens cachedTokens tokensPerSecond }
  }
`,
  [ModelParts, ParameterParts],
);

/** A chat without its turns. */
export const ChatParts = graphql(
  `
  fragment ChatParts on Chat @_unmask {
    id title blind shared own createdAt updatedAt
    columns { number model { ...ModelParts } parameters { ...ParameterParts } }
  }
`,
  [ModelParts, ParameterParts],
);

export const TurnParts = graphql(
  `
  fragment TurnParts on ChatTurn @_unmask {
    id previous prompt createdAt
    attachments { name type size }
    answers { ...AnswerParts }
    votes { id turn winner answers blind createdAt }
  }
`,
  [AnswerParts],
);

/** A chat with some of its turns, the newest first read. */
export const ChatQuery = graphql(
  `
  query Chat($id: ID!, $last: Int!, $before: Cursor) {
    chat(id: $id) {
      ...ChatParts
      turns(last: $last, before: $before) {
        totalCount
        pageInfo { hasPreviousPage startCursor }
        edges { node { ...TurnParts } }
      }
    }
  }
`,
  [ChatParts, TurnParts],
);

/** The contents of the files of a prompt. */
export const AttachmentsQuery = graphql(`
  query ChatAttachments($turn: ID!) {
    node(id: $turn) { ... on ChatTurn { id attachments { name type size data } } }
  }
`);

export const ChatsQuery = graphql(`
  query Chats($first: Int!, $after: Cursor, $text: String) {
    chats(first: $first, after: $after, text: $text, orderBy: [{ field: UPDATED_AT, direction: DESC }]) {
      totalCount
      pageInfo { hasNextPage endCursor }
      edges { node { id title updatedAt shared blind } }
    }
  }
`);

export const ModelsQuery = graphql(`query ChatModels { chatModels { ...ModelParts } }`, [ModelParts]);

export const ChatUpdates = graphql(
  `
  subscription ChatUpdates($id: ID!) {
    chatUpdates(id: $id) {
      chat { id }
      answer { ...AnswerParts }
      delta { answer textAt text reasoningAt reasoning }
    }
  }
`,
  [AnswerParts],
);

export const CreateChat = graphql(
  `mutation CreateChat($input: CreateChatInput!) { createChat(input: $input) { chat { ...ChatParts } } }`,
  [ChatParts],
);
export const UpdateChat = graphql(
  `mutation UpdateChat($input: UpdateChatInput!) { updateChat(input: $input) { chat { ...ChatParts } } }`,
  [ChatParts],
);
export const DeleteChat = graphql(`mutation DeleteChat($input: DeleteChatInput!) { deleteChat(input: $input) { id } }`);
export const SendPrompt = graphql(
  `mutation SendChatPrompt($input: SendChatPromptInput!) { sendChatPrompt(input: $input) { turn { ...TurnParts } } }`,
  [TurnParts],
);
export const Regenerate = graphql(
  `
  mutation RegenerateChatAnswer($input: RegenerateChatAnswerInput!) {
    regenerateChatAnswer(input: $input) { turn { ...TurnParts } }
  }
`,
  [TurnParts],
);
export const StopAnswers = graphql(
  `mutation StopChatAnswers($input: StopChatAnswersInput!) { stopChatAnswers(input: $input) { chat { id } } }`,
);
export const VoteAnswer = graphql(
  `mutation VoteChatAnswer($input: VoteChatAnswerInput!) { voteChatAnswer(input: $input) { chat { ...ChatParts } } }`,
  [ChatParts],
);
export const ReplayChat = graphql(
  `mutation ReplayChat($input: ReplayChatInput!) { replayChat(input: $input) { replay { id } } }`,
);
export const ImportChat = graphql(
  `mutation ImportChat($input: ImportChatInput!) { importChat(input: $input) { chat { id title } } }`,
);
export const ExportChat = graphql(`query ExportChat($id: ID!) { exportChat(id: $id) }`);

export const ReplaysQuery = graphql(
  `
  query ChatReplays($id: ID!) {
    chat(id: $id) {
      id
      replays {
        id column createdAt
        model { ...ModelParts }
        answers {
          prompt equal similarity
          original { id status text metrics { firstToken duration completionTokens } }
          repeated { id status message text revision metrics { firstToken duration completionTokens } }
        }
      }
    }
  }
`,
  [ModelParts],
);

export const TallyQuery = graphql(
  `
  query ChatTally($deployment: ID) {
    chatTally(deployment: $deployment) { revision wins losses ties model { ...ModelParts } }
  }
`,
  [ModelParts],
);

export type Model = ResultOf<typeof ModelParts>;
export type Parameters = ResultOf<typeof ParameterParts>;
export type Answer = ResultOf<typeof AnswerParts>;
export type Turn = ResultOf<typeof TurnParts>;
export type Chat = ResultOf<typeof ChatParts>;
export type Column = Chat["columns"][number];
export type Delta = NonNullable<ResultOf<typeof ChatUpdates>["chatUpdates"]["delta"]>;
export type Replay = NonNullable<ResultOf<typeof ReplaysQuery>["chat"]>["replays"][number];
export type Tally = ResultOf<typeof TallyQuery>["chatTally"][number];

/** The most columns of a chat. */
export const mostColumns = 8;

/** Reports whether an answer can still change. */
export const runs = (answer: Pick<Answer, "status">) => answer.status === "WAITING" || answer.status === "RUNNING";
