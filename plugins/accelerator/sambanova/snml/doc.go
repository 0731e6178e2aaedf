// Package snml is the part of SambaNova's management API that the SambaNova plugin uses. Only that
// plugin imports it.
package snml
