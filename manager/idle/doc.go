// Package idle ends sessions that are not used. Checkers define when a session counts as idle;
// they are objects that are bound to domains, projects, resource groups or all sessions. The
// leader checks all running sessions at intervals, warns their owners and ends the idle ones.
// Missing data counts as activity.
package idle
