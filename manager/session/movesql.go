package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/leader"
)

// The statement of a move is put together from these parts. A start has three of them one
// after the other, so each is one round trip; with a client, it is also the transaction.
// The arguments are those of move.args. Nothing happens without the row of the fence, and
// kernels, allocations and history follow only sessions that have moved.
const (
	moveFence = `WITH f AS (SELECT FROM fences WHERE name = '` + leader.FenceName + `' AND epoch = $4::bigint FOR SHARE),
`
	moveSessions = `s AS (UPDATE sessions SET status = $6::text, version = version + 1, status_message = $7, deadline_at = $8::timestamptz, retry_at = $9::timestamptz,
  idle = CASE WHEN $5::text = 'running' THEN NULL ELSE idle END,
  pending = CASE WHEN $10::boolean OR $6::text = 'scheduled' THEN NULL ELSE pending END,
  scheduled_at = CASE $6::text WHEN 'scheduled' THEN $1::timestamptz WHEN 'pending' THEN NULL ELSE scheduled_at END,
  started_at = CASE $6::text WHEN 'running' THEN $1::timestamptz WHEN 'pending' THEN NULL ELSE started_at END,
  terminated_at = CASE WHEN $10::boolean THEN $1::timestamptz ELSE terminated_at END,
  attempt = CASE $6::text WHEN 'pending' THEN attempt + 1 ELSE attempt END,
  termination_reason = CASE $6::text WHEN 'pending' THEN NULL ELSE COALESCE($11::text, termination_reason) END,
  result = COALESCE($12::text, result), exit_code = COALESCE($13::bigint, exit_code), avoid_agents = COALESCE($14::jsonb, avoid_agents)
  WHERE `
	moveFrom = ` AND status = $5::text AND ($15::boolean IS NULL OR (retry_at IS NOT NULL) = $15::boolean) AND ($4::bigint IS NULL OR EXISTS (SELECT FROM f))
  RETURNING sessions.id),
`
	moveKernels = `k AS (UPDATE kernels SET status = $6::text,
  agent_id = CASE $6::text WHEN 'pending' THEN NULL ELSE agent_id END,
  started_at = CASE $6::text WHEN 'running' THEN $1::timestamptz WHEN 'pending' THEN NULL ELSE started_at END,
  terminated_at = CASE WHEN $10::boolean THEN $1::timestamptz ELSE terminated_at END,
  status_message = CASE WHEN $10::boolean THEN $7 ELSE status_message END,
  exit_code = CASE WHEN $10::boolean THEN COALESCE($13::bigint, exit_code) ELSE exit_code END
  FROM s WHERE session_id = s.id AND terminated_at IS NULL)
`
	moveFree = `, a AS (UPDATE allocations SET freed_at = $1::timestamptz FROM s WHERE allocations.session_id = s.id AND freed_at IS NULL),
n AS (UPDATE session_networks SET freed_at = $1::timestamptz FROM s WHERE session_networks.session_id = s.id AND freed_at IS NULL)
`
	moveHistory = insertEvents + ` JOIN s ON s.id = w.session_id`
)

// statement returns the text of a move of n sessions.
func (m move) statement(n int) string {
	which := "sessions.id = $3::uuid"
	if n > 1 {
		which = "sessions.id = ANY ($3::text[]::uuid[])"
	}
	text := moveFence + moveSessions + which + moveFrom
	switch {
	case m.to == lifecycle.Scheduled:
		return text + placeKernels + placeAllocations + moveHistory + placeAll
	case m.to == lifecycle.Pending || m.to.Final():
		return text + moveKernels + moveFree + moveHistory
	}
	return text + moveKernels + moveHistory
}

// args returns the arguments of the statement of a move.
func (m move) args(now time.Time, history string, sessions []*ent.Session) ([]any, error) {
	one := sessions[0]
	var ids any = one.ID
	if len(sessions) > 1 {
		list := make([]string, len(sessions))
		for i, s := range sessions {
			list[i] = s.ID.String()
		}
		ids = list
	}
	var epoch *int64
	if m.epoch != 0 {
		epoch = &m.epoch
	}
	var deadline *time.Time
	if d := cmp.Or(m.within, lifecycle.Deadline(m.to)); d > 0 && lifecycle.Deadline(m.to) > 0 {
		at := now.Add(d)
		deadline = &at
	}
	var outcome, avoid *string
	if m.to.Final() && m.outcome != "" {
		text := string(m.outcome)
		outcome = &text
	}
	if m.to == lifecycle.Pending && len(m.avoid) > 0 {
		list, err := json.Marshal(avoiding(one.AvoidAgents, m.avoid))
		if err != nil {
			return nil, fmt.Errorf("move session %s to %s: %w", one.ID, m.to, err)
		}
		text := string(list)
		avoid = &text
	}
	var retrying *bool // its user may have ended what was to start again
	if one.Status == lifecycle.Terminating {
		yes := one.RetryAt != nil
		retrying = &yes
	}
	args := []any{now, history, ids, epoch, string(one.Status), string(m.to), m.message, deadline, m.retryAt, m.to.Final(),
		(*string)(m.reason), outcome, m.exitCode, avoid, retrying}
	if m.to != lifecycle.Scheduled {
		return args, nil
	}
	placed, err := placeArgs(m.places)
	return append(args, placed...), err
}
