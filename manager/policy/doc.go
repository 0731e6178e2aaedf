// Package policy writes resource policies, attaches them, and returns the limits that apply to
// a session of a user in a project of a domain.
package policy
