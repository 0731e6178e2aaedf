// Package noticekind defines the kinds of notices, the ways in which they reach people, the defaults for
// both, and the texts in every language. The database, the manager and the client of mail use it.
package noticekind

import "slices"

// Kind is the kind of event that a notice is about.
type Kind string

// The kinds.
const (
	SessionStarted  Kind = "session_started" // after more than a minute in the queue
	SessionEnded    Kind = "session_ended"
	SessionFailed   Kind = "session_failed"
	SessionIdle     Kind = "session_idle"     // it ends soon, because it is idle
	SessionLifetime Kind = "session_lifetime" // it ends soon, at the end of its lifetime
	FolderShared    Kind = "folder_shared"
	Quota           Kind = "quota"
	Budget          Kind = "budget"
	ReplicaFailed   Kind = "replica_failed"
	RolledBack      Kind = "rolled_back"
	BuildDone       Kind = "build_done"
	BuildFailed     Kind = "build_failed"
	ChannelDisabled Kind = "channel_disabled"
	AgentLost       Kind = "agent_lost"
	AgentBack       Kind = "agent_back"
	PluginDown      Kind = "plugin_down"
	StorageDown     Kind = "storage_down"
	Certificate     Kind = "certificate" // it expires soon
	DeadLetter      Kind = "dead_letter"
	Test            Kind = "test"
)

// Kinds lists all, in the order of the page.
func Kinds() []Kind {
	return []Kind{
		SessionStarted, SessionEnded, SessionFailed, SessionIdle, SessionLifetime, FolderShared, Quota, Budget, ReplicaFailed, RolledBack,
		BuildDone, BuildFailed, ChannelDisabled, AgentLost, AgentBack, PluginDown, StorageDown, Certificate, DeadLetter, Test,
	}
}

// Values are the values of the column, for ent.
func (Kind) Values() []string { return texts(Kinds()) }

// ForAdmins reports whether notices of the kind are for superadmins only.
func (k Kind) ForAdmins() bool {
	return slices.Contains([]Kind{AgentLost, AgentBack, PluginDown, StorageDown, Certificate, DeadLetter}, k)
}

// Severity says how urgent a notice or an announcement is.
type Severity string

// The severities.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Error   Severity = "error"
)

// Values are the values of the column, for ent.
func (Severity) Values() []string { return texts([]Severity{Info, Warning, Error}) }

// Severity returns the severity of a kind.
func (k Kind) Severity() Severity {
	switch k {
	case SessionFailed, ReplicaFailed, RolledBack, BuildFailed, AgentLost, PluginDown, StorageDown:
		return Error
	case SessionIdle, SessionLifetime, Quota, Budget, ChannelDisabled, Certificate, DeadLetter:
		return Warning
	}
	return Info
}

// Route is a way in which a notice reaches a person.
type Route string

// The routes.
const (
	Page    Route = "page"
	Browser Route = "browser" // a notification of the browser, while the page is open
	Mail    Route = "email"
	Webhook Route = "webhook"
	Slack   Route = "slack" // a webhook in the form of Slack's
)

// Routes lists all, in the order of the page.
func Routes() []Route { return []Route{Page, Browser, Mail, Webhook, Slack} }

// Values are the values of the column, for ent.
func (Route) Values() []string { return texts(Routes()) }

// Channels are the routes that send something out of the platform.
func Channels() []Route { return []Route{Mail, Webhook, Slack} }

// Defaults returns the routes of a kind for people who did not choose any.
func Defaults(k Kind) []Route {
	switch k {
	case SessionStarted, SessionEnded, BuildDone, AgentBack:
		return []Route{Page, Webhook, Slack}
	}
	return []Route{Page, Browser, Mail, Webhook, Slack}
}

// Choice is the routes that a person chose, by kind. Kinds that it lacks have the defaults.
type Choice map[Kind][]Route

// Of returns the routes of a kind.
func (c Choice) Of(k Kind) []Route {
	if list, chosen := c[k]; chosen {
		return list
	}
	return Defaults(k)
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, one := range list {
		out[i] = string(one)
	}
	return out
}
