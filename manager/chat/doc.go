// Package chat is chats of users with models: prompts to one or several models side by side, branches, votes and replays, and
// the endpoints outside the cluster that chats can use. It stores what is asked; gateways ask the models and store the answers.
// Prompts and answers are private: they are in no log and in no audit entry.
package chat
