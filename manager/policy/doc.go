// Package policy writes resource policies, attaches them, and answers which
// limits bind a session of a user in a project of a domain.
package policy
