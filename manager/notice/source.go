package notice

import (
	"database/sql"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/noticekind"
)

// queued is how long a session must have waited for its start to make a notice.
const queued = time.Minute

// sessionEvents reads what happened to sessions that people started: not to replicas and builds, which have notices of their own.
const sessionEvents = `SELECT e.id, e.session_id, coalesce(e.to_status, ''), coalesce(e.from_status, ''), e.code, e.message, e.at,
	s.name, s.owner_id, s.array_id, s.created_at, s.starts_at, s.termination_reason, s.result, s.status_message
FROM session_events e JOIN sessions s ON s.id = e.session_id
WHERE e.id > $1 AND s.type <> 'inference' AND NOT EXISTS (SELECT FROM image_builds b WHERE b.session_id = s.id)
	AND (e.to_status IN ('running', 'terminated', 'cancelled', 'error') AND e.to_status IS DISTINCT FROM e.from_status OR e.code IN ('idle_warning', 'lifetime_warning'))
ORDER BY e.id LIMIT $2`

type sessionRow struct {
	id, session, owner                 uuid.UUID
	array                              *uuid.UUID
	to, from, code, message, name, why string
	reason, result                     *string
	at, created                        time.Time
	starts                             *time.Time
}

func scanSession(rows *sql.Rows) (uuid.UUID, []Event, error) {
	var r sessionRow
	err := rows.Scan(&r.id, &r.session, &r.to, &r.from, &r.code, &r.message, &r.at, &r.name, &r.owner, &r.array, &r.created, &r.starts, &r.reason, &r.result, &r.why)
	if err != nil {
		return uuid.Nil, nil, err
	}
	kind, why := r.kind()
	if kind == "" {
		return r.id, nil, nil
	}
	e := Event{Key: "session event " + r.id.String(), Kind: kind, Users: []uuid.UUID{r.owner}, Subject: r.session,
		Parameters: map[string]string{"name": r.name, "reason": why}}
	if r.array != nil {
		e.Group = r.array.String()
	}
	return r.id, []Event{e}, nil
}

// kind returns the kind of the notice and the reason; "" for an event without notice, such as an end that the owner requested.
func (r sessionRow) kind() (noticekind.Kind, string) {
	why := r.message
	if why == "" {
		why = r.why
	}
	switch r.code {
	case "idle_warning":
		return noticekind.SessionIdle, why
	case "lifetime_warning":
		return noticekind.SessionLifetime, why
	}
	reason := ""
	if r.reason != nil {
		reason = *r.reason
	}
	switch to := lifecycle.Status(r.to); {
	case to == lifecycle.Running && !r.waited():
		return "", ""
	case to == lifecycle.Running:
		return noticekind.SessionStarted, why
	case reason == "user_requested", to == lifecycle.Cancelled && reason == "":
		return "", ""
	case to == lifecycle.Error, to == lifecycle.Cancelled, r.result != nil && *r.result == "failure":
		return noticekind.SessionFailed, why
	}
	return noticekind.SessionEnded, why
}

// waited reports whether the session began later than a minute after it could have.
func (r sessionRow) waited() bool {
	since := r.created
	if r.starts != nil && r.starts.After(since) {
		since = *r.starts
	}
	return r.at.Sub(since) > queued
}

const deploymentEvents = `SELECT e.id, e.deployment_id, e.kind, e.message, d.name, d.owner_id
FROM deployment_events e JOIN deployments d ON d.id = e.deployment_id
WHERE e.id > $1 AND e.kind IN ('replica_failed', 'rolled_back') ORDER BY e.id LIMIT $2`

func scanDeployment(rows *sql.Rows) (uuid.UUID, []Event, error) {
	var id, deployment, owner uuid.UUID
	var kind, message, name string
	if err := rows.Scan(&id, &deployment, &kind, &message, &name, &owner); err != nil {
		return uuid.Nil, nil, err
	}
	e := Event{Key: "deployment event " + id.String(), Kind: noticekind.ReplicaFailed, Users: []uuid.UUID{owner}, Subject: deployment, Group: deployment.String(),
		Parameters: map[string]string{"name": name, "reason": message}}
	if kind == "rolled_back" {
		e.Kind = noticekind.RolledBack
	}
	return id, []Event{e}, nil
}

// shareEvents reads invitations to folders of people who have an account.
const shareEvents = `SELECT s.id, s.vfolder_id, f.name, u.id, coalesce(i.email, '')
FROM vfolder_shares s JOIN vfolders f ON f.id = s.vfolder_id
JOIN users u ON u.id = s.user_id OR s.user_id IS NULL AND u.email = s.email AND u.domain_id = s.domain_id
LEFT JOIN users i ON i.id = s.inviter_id
WHERE s.id > $1 AND s.status IN ('pending', 'accepted') ORDER BY s.id LIMIT $2`

func scanShare(rows *sql.Rows) (uuid.UUID, []Event, error) {
	var id, folder, user uuid.UUID
	var name, by string
	if err := rows.Scan(&id, &folder, &name, &user, &by); err != nil {
		return uuid.Nil, nil, err
	}
	return id, []Event{{Key: "share " + id.String(), Kind: noticekind.FolderShared, Users: []uuid.UUID{user}, Subject: folder,
		Parameters: map[string]string{"name": name, "by": by}}}, nil
}

func scanBuild(rows *sql.Rows) (Event, error) {
	var id, owner uuid.UUID
	var name, status, message string
	if err := rows.Scan(&id, &owner, &name, &status, &message); err != nil {
		return Event{}, err
	}
	e := Event{Key: "build " + id.String() + " " + status, Kind: noticekind.BuildDone, Users: []uuid.UUID{owner}, Subject: id,
		Parameters: map[string]string{"name": name, "reason": message}}
	if status == "failed" {
		e.Kind = noticekind.BuildFailed
	}
	return e, nil
}
