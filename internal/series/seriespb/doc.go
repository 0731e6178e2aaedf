// Package seriespb is the form in which measurements over time are stored.
package seriespb
